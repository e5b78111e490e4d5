(() => {
  const page = 200; /* rows laid out at a time: thousands of them would keep a browser busy for seconds */
  const box = document.getElementById("wanted");
  const matches = document.getElementById("matches");
  const more = document.getElementById("more");
  const list = document.querySelector(".list");
  if (!box || !list) return;
  const body = list.tBodies[0];
  const rows = [...body.rows];
  /* a narrow screen lays rows out as lines, and some browsers then forget that they are rows */
  const role = (found, name) => found.forEach((one) => one.setAttribute("role", name));
  role([list], "table");
  role(list.querySelectorAll("thead, tbody"), "rowgroup");
  role(list.querySelectorAll("tr"), "row");
  role(list.querySelectorAll("thead th"), "columnheader");
  role(list.querySelectorAll("tbody th"), "rowheader");
  role(list.querySelectorAll("td"), "cell");
  const plain = (text) => text.normalize().toLowerCase();
  const texts = rows.map((row) => plain([...row.cells].map((cell) => cell.textContent).join("\n")));
  const number = (value) => value.toLocaleString("en");
  let found = [];
  const show = (limit) => {
    const shown = found.slice(0, limit);
    body.replaceChildren(...shown);
    more.hidden = shown.length === found.length;
    const words = [];
    if (box.value) words.push(number(found.length) + " of " + number(rows.length) + " listed rows match");
    if (!more.hidden) words.push("the first " + number(shown.length) + " of " + number(found.length) + " are shown");
    matches.value = words.join("; ");
  };
  const narrow = () => {
    const wanted = plain(box.value);
    found = rows.filter((_, i) => texts[i].includes(wanted));
    show(page);
  };
  box.addEventListener("input", narrow);
  more.addEventListener("click", () => show(body.rows.length + page));
  document.querySelector(".filter").hidden = false;
  narrow();
})();
