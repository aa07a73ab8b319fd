// Tables that are wider than the window can be scrolled by keyboard, too. Material wraps them when a page is shown.
document$.subscribe(() => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap")) {
    one.tabIndex = 0;
    one.setAttribute("role", "region");
    one.setAttribute("aria-label", "Table");
  }
});
