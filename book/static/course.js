// Names for controls that the theme and the widgets leave without one.
(() => {
  "use strict";

  // A slider handle takes its name from the label beside it, its value from the number shown.
  function nameSliders(root) {
    for (const handle of root.querySelectorAll(".noUi-handle")) {
      const box = handle.closest(".widget-slider, .widget-hslider, .widget-inline-hbox");
      const label = box && box.querySelector(".widget-label");
      const readout = box && box.querySelector(".widget-readout");
      if (label && !handle.hasAttribute("aria-label")) {
        handle.setAttribute("aria-label", label.textContent.trim() || "value");
      }
      if (readout && handle.getAttribute("aria-valuetext") !== readout.textContent) {
        handle.setAttribute("aria-valuetext", readout.textContent);
      }
    }
  }

  // A control whose visible text is not part of its accessible name cannot be called by voice.
  function nameThemeControls() {
    for (const control of document.querySelectorAll("button[aria-label], summary[aria-label]")) {
      const text = control.textContent.trim();
      if (text && !control.getAttribute("aria-label").includes(text)) {
        control.removeAttribute("aria-label");
      }
    }
  }

  // The theme leaves the title above the contents outside every landmark.
  function markTitle() {
    const title = document.querySelector(".sidebar-primary-item:has(.navbar-brand)");
    if (title) {
      title.setAttribute("role", "region");
      title.setAttribute("aria-label", "Title of the book");
    }
  }

  // docutils marks bibliography entries with roles that do not fit together; the text suffices.
  function plainBibliography() {
    for (const entry of document.querySelectorAll(".citation-list, .citation")) {
      entry.removeAttribute("role");
    }
  }

  // Code and tables that scroll sideways must be reachable by keyboard.
  function reachScrollable() {
    for (const box of document.querySelectorAll(
      ".highlight pre, .cell_output pre, .cell_output, .pst-scrollable-table-container, div.math"
    )) {
      if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) {
        box.setAttribute("tabindex", "0");
      }
    }
  }

  // Names in tables may break after an underscore, a dot or a bracket, and nowhere else.
  function breakNames() {
    for (const name of document.querySelectorAll(".bd-article table code .pre")) {
      name.innerHTML = name.innerHTML.replace(/[_.(]/g, "$&<wbr>");
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    breakNames();
    nameThemeControls();
    markTitle();
    plainBibliography();
    nameSliders(document);
    reachScrollable();
    new MutationObserver(() => nameSliders(document)).observe(document.body, {
      childList: true,
      characterData: true,
      subtree: true,
    });
    window.addEventListener("load", () => setTimeout(reachScrollable, 500));
  });
})();
