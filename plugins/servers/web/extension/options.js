// The settings: where the server is, and the extension's own token.

import { readSettings, send, t, translate } from "./server.js";

const $ = (id) => document.getElementById(id);

/** Return the address of a server without a slash at its end; "" if a token must not be sent there. */
function readAddress(text) {
  try {
    const url = new URL(text);
    const isHere = ["127.0.0.1", "localhost"].includes(url.hostname);
    if (url.protocol !== "https:" && !(url.protocol === "http:" && isHere)) return "";
    return url.origin + url.pathname.replace(/\/+$/, "");
  } catch {
    return "";
  }
}

async function save(event) {
  event.preventDefault();
  const settings = { server: readAddress($("server").value.trim()), token: $("token").value.trim() };
  if (!settings.server) return say(t("badAddress"));
  // A browser asks for this only in answer to a click, so that nothing may be awaited before.
  const origins = [`${new URL(settings.server).protocol}//${new URL(settings.server).hostname}/*`];
  if (!(await chrome.permissions.request({ origins }))) return say(t("denied"));
  await chrome.storage.local.set(settings);
  try {
    const { agents } = await send(settings, "api/agents");
    say(t("saved", agents.map((agent) => agent.name).join(", ")));
  } catch (error) {
    say(error.message);
  }
}

function say(text) {
  $("result").textContent = text;
}

translate();
$("settings").addEventListener("submit", save);
readSettings().then(({ server, token }) => {
  $("server").value = server;
  $("token").value = token;
});
