// The dialog that asks for a token.

export class TokenDialog {
  constructor(use) {
    this.dialog = document.getElementById("token-dialog");
    this.input = document.getElementById("token");
    this.error = document.getElementById("token-error");
    document.getElementById("token-open").onclick = () => this.open("");
    this.dialog.addEventListener("close", () => {
      if (this.dialog.returnValue === "ok") use(this.input.value.trim());
      this.dialog.returnValue = "";
      this.input.value = "";
    });
  }

  open(error) {
    this.error.textContent = error;
    if (!this.dialog.open) this.dialog.showModal();
    this.input.focus();
  }
}
