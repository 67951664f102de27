// A click on a heading sorts its table: numbers from the largest, names from a to z, and the other way round at the next click.
for (const button of document.querySelectorAll("button.sort")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), row = head.parentNode, body = row.closest("table").tBodies[0];
    const at = [...row.cells].indexOf(head), numbers = head.classList.contains("n");
    const falls = head.ariaSort ? head.ariaSort === "ascending" : numbers;
    for (const other of row.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falls ? "descending" : "ascending");
    const value = (tr) => tr.cells[at].dataset.v ?? tr.cells[at].textContent;
    const order = (a, b) => numbers ? Number(value(a)) - Number(value(b)) : value(a).localeCompare(value(b));
    body.append(...[...body.rows].sort((a, b) => falls ? order(b, a) : order(a, b)));
  });
}
