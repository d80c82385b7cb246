// The server of the extension's settings, and the texts in the user's language.

/** Return a text in the language of the browser. */
export function t(key, ...values) {
  return chrome.i18n.getMessage(key, values.map(String));
}

/** Write the texts of a page into its elements. */
export function translate() {
  document.documentElement.lang = chrome.i18n.getUILanguage();
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
}

/** Return the address and the token; both are "" until the user sets them, and until then nothing is sent. */
export async function readSettings() {
  return chrome.storage.local.get({ server: "", token: "" });
}

/** Send a request to the server. The error says what the user can do. */
export async function send({ server, token }, path, body) {
  let response;
  try {
    response = await fetch(`${server}/${path}`, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
      body: body && JSON.stringify(body),
      credentials: "omit",
      redirect: "error", // the token goes to no other address
    });
  } catch {
    throw new Error(t("unreachable", server));
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(t("refused", answer.error?.message ?? `HTTP ${response.status}`));
  return answer;
}
