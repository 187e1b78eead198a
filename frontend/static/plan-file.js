// Reads the file of a room into its form: without this, its text is pasted. The form itself is sent by the browser.
const form = document.querySelector("[data-plan-form]");
const chosen = form?.querySelector("[data-plan-file]");
const text = form?.querySelector("[data-plan-text]");

if (chosen && text) {
  form.querySelector("[data-plan-field]").hidden = false;
  const send = form.querySelector("button[type=submit]");
  chosen.addEventListener("change", async () => {
    const file = chosen.files[0];
    text.value = "";
    if (!file) return;
    // Nobody sends half a file.
    send.disabled = true;
    try {
      text.value = await file.text();
    } finally {
      send.disabled = false;
    }
  });
}
