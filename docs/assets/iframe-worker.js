// Search in pages opened from a folder. A browser starts no worker from a file: address, so the
// theme's search worker runs in a hidden frame instead; served pages keep the browser's own.
// English only: the worker loads nothing besides itself.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.hidden = true;
      frame.title = "search";
      const inner = frame.contentWindow;
      const tell = (target, data) => target.dispatchEvent(new MessageEvent("message", { data }));
      inner.postMessage = (data) => tell(this, data);
      this.ready = new Promise((loaded) => {
        const script = inner.document.createElement("script");
        script.src = address;
        script.onload = loaded;
        inner.document.body.append(script);
      });
      this.postMessage = (data) => this.ready.then(() => tell(inner, data));
      this.terminate = () => frame.remove();
    }
  };
}
