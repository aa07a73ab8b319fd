// Draws the charts of the page: once, when the colour scheme changes, and for paper. `html[data-drawn]` says for which.
(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)"), paper = matchMedia("print");
  const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Only fields that hold colours are looked at: a topic may be called like a variable.
  const coloured = (value, name) => {
    if (name === "colorscale") return value.map(([at, colour]) => [at, variable(colour)]);
    if (typeof value === "string") return name === "color" ? variable(value) : value;
    if (Array.isArray(value)) return typeof value[0] === "object" ? value.map(one => coloured(one, name)) : value;
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, coloured(one, key)]));
  };

  const clock = seconds => {
    const whole = Math.round(seconds), two = number => String(number).padStart(2, "0");
    const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
    return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
  };

  const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400];
  const ticks = (end, length, room) => {
    const most = Math.max(2, Math.floor(length / room));
    const step = STEPS.find(one => end / one <= most) ?? 86400 * Math.ceil(end / 86400 / most);
    const at = Array.from({length: Math.floor(end / step) + 1}, (_, place) => place * step);
    return {tickvals: at, ticktext: at.map(end < 60 ? seconds => `${Number(seconds.toFixed(2))} s` : clock)};
  };

  // `room` is what a label and the gap beside it take of the length, in pixels.
  const axis = (given, length, room) => {
    const {durations, ...rest} = given ?? {};
    const drawn = {gridcolor: variable("--line"), zeroline: false, linecolor: variable("--line"), fixedrange: true, ...rest};
    return durations ? {...drawn, ...ticks(rest.range[1], length, room)} : drawn;
  };

  const draw = (place, figure) => {
    const {data, layout} = coloured(figure, "");
    const width = place.clientWidth;
    Plotly.react(place, data, {
      ...layout,
      height: Number(place.dataset.height),
      autosize: true,
      font: {color: variable("--ink"), family: getComputedStyle(document.body).fontFamily, size: 12},
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: {l: 8, r: 8, b: 32, t: 16, ...layout.margin},
      legend: {orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0},
      xaxis: axis(layout.xaxis, width, 90),
      yaxis: {automargin: true, ...axis(layout.yaxis, Number(place.dataset.height), 50)},
      hoverlabel: {bgcolor: variable("--card"), bordercolor: variable("--line"), font: {color: variable("--ink")}},
    }, {displayModeBar: false, responsive: true, doubleClick: false, scrollZoom: false, locale: "en"});
  };

  const figures = JSON.parse(document.getElementById("figures").textContent);
  const drawAll = () => {
    for (const place of document.querySelectorAll(".plotly-place")) draw(place, figures[place.id]);
    document.documentElement.dataset.drawn = paper.matches ? "paper" : dark.matches ? "dark" : "light";
  };
  drawAll();
  for (const one of [dark, paper]) one.addEventListener("change", drawAll);
})();
