// Reads the file of a seating plan into the form's text field. Without this script the text is pasted by hand.
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
    // Prevents that an incomplete text is sent.
    send.disabled = true;
    try {
      text.value = await file.text();
    } finally {
      send.disabled = false;
    }
  });
}
