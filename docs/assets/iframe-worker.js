// Browsers start no worker in a page that is opened from a file. The search needs one, so a hidden frame does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe")
    #ready

    constructor(url) {
      super()
      this.onmessage = null
      this.#frame.hidden = true
      this.#ready = new Promise((resolve) => {
        this.#frame.addEventListener("load", () => resolve(this.#load(String(url))), { once: true })
      })
      document.documentElement.append(this.#frame)
    }

    // What goes over is copied, and arrives later: the two sides must share nothing, as they would not with a worker.
    postMessage(message) {
      const data = structuredClone(message)
      this.#ready.then((inside) => setTimeout(() => inside.onmessage?.(new MessageEvent("message", { data }))))
    }

    terminate() {
      this.#frame.remove()
    }

    #load(url) {
      const inside = this.#frame.contentWindow
      inside.postMessage = (message) => {
        const event = new MessageEvent("message", { data: structuredClone(message) })
        setTimeout(() => {
          this.onmessage?.(event)
          this.dispatchEvent(event)
        })
      }
      return new Promise((resolve, reject) => {
        const script = inside.document.createElement("script")
        script.src = url
        script.onload = () => resolve(inside)
        script.onerror = reject
        inside.document.body.append(script)
      })
    }
  }
}
