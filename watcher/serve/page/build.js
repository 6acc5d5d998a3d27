// Makes elements. Every text of others goes in as text, never as markup.

/**
 * Return an element. Attributes that are null, undefined or false are left out; a
 * function is called on the event of its name.
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Set a text only where it is another one: a screen reader hears each change. */
export function tell(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/**
 * Let a parent hold these elements in this order. What stays is not touched, so that
 * nobody loses his place.
 */
export function arrange(parent, elements) {
  const wanted = new Set(elements);
  for (const child of [...parent.children]) {
    if (!wanted.has(child)) {
      child.remove();
    }
  }
  const focused = document.activeElement;
  elements.forEach((element, index) => {
    if (parent.children[index] !== element) {
      parent.insertBefore(element, parent.children[index] ?? null);
    }
  });
  if (focused !== document.activeElement && parent.contains(focused)) {
    focused.focus({ preventScroll: true });
  }
}

/** Return a table; on a narrow screen each row is a card, so each cell has its head. */
export function table(heads, rows) {
  return make(
    "table",
    {},
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make(
      "tbody",
      {},
      ...rows.map((cells) =>
        make("tr", {}, ...cells.map((cell, n) => make("td", { "data-head": heads[n] }, cell))),
      ),
    ),
  );
}
