// Opened from a file, a browser allows no workers: the search then runs in a hidden frame.
// It looks for the name IFrameWorker, to find the scripts of languages beside its own.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      inside.importScripts = (...urls) =>
        urls.reduce((done, next) => done.then(() => this.load(next)), Promise.resolve())
      this.ready = this.load(url)
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = new URL(url, location.href)
        script.onload = resolve
        script.onerror = () => reject(new Error(`cannot load ${url}`))
        this.frame.contentDocument.body.appendChild(script)
      })
    }
    postMessage(data) {
      const inside = this.frame.contentWindow
      this.ready = this.ready.then(() => new Promise((done) =>
        setTimeout(() => done(inside.dispatchEvent(new MessageEvent("message", { data }))))))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
