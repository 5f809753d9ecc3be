function (identity) {
  const form = document.getElementById(identity);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    const choice = event.target;
    const feedback = choice.closest("fieldset").querySelector(".posenc-quiz-feedback");
    const right = choice.dataset.right === "true";
    feedback.textContent = (right ? "Right. " : "Not quite. ") + choice.dataset.why;
    feedback.dataset.right = choice.dataset.right;
  });
}
