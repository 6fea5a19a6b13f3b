"""The page's own JavaScript: a reader chooses two runs and a text, and sees both maps of it.

All text from the data is set as text, never as HTML. The choice stands in the address, so that a link keeps it.
"""

MAPS = r"""
(() => {
  const data = JSON.parse(document.getElementById("maps-data").textContent);
  const at = id => document.getElementById(id);
  const runs = [at("first-run"), at("second-run")], list = at("text-list"), search = at("text-search");
  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const shares = reading => {
    if (!reading || !reading.weights) return null;
    const sum = reading.weights.reduce((total, w) => total + w, 0);
    const isMap = sum > 0 && reading.weights.every(w => w !== null && w >= 0);
    return isMap ? reading.weights.map(w => w / sum) : null;
  };
  const sameTokens = (a, b) =>
    a.length === b.length && a.every((token, i) => token.toLowerCase() === b[i].toLowerCase());
  const distance = text => {
    const [a, b] = runs.map(run => text.runs[run.value]), [p, q] = [shares(a), shares(b)];
    if (!p || !q || p.length < 2 || !sameTokens(a.tokens, b.tokens)) return null;
    return p.reduce((total, w, i) => total + Math.abs(w - q[i]), 0) / 2;
  };
  const number = x => x === null ? "undefined" : Number(x.toPrecision(3)).toString();

  const describe = (text, d) =>
    `${d === null ? "  –  " : d.toFixed(3)}  ${text.name}: ${words(text).slice(0, 60)}`;
  const words = text => (text.runs.find(reading => reading && reading.tokens) || {tokens: []}).tokens.join(" ");

  const fill = () => {
    const wanted = search.value.toLowerCase(), chosen = list.value;
    const shown = data.texts
      .map((text, i) => ({text, i, d: distance(text)}))
      .filter(({text}) => `${text.name} ${words(text)}`.toLowerCase().includes(wanted))
      .sort((a, b) => (b.d ?? -1) - (a.d ?? -1) || a.i - b.i);
    list.replaceChildren(...shown.map(({text, i, d}) => {
      const option = make("option", describe(text, d));
      option.value = i;
      return option;
    }));
    at("text-count").textContent = `${shown.length} of ${data.texts.length} texts, the most different first`;
    if (shown.some(({i}) => String(i) === chosen)) list.value = chosen;
    else list.selectedIndex = shown.length ? 0 : -1;
    draw();
  };

  const map = (text, index) => {
    const reading = text.runs[index], box = make("div", undefined, "attention");
    box.append(make("h3", data.runs[index]));
    if (!reading) {
      box.append(make("p", "This run did not audit the text.", "small"));
      return box;
    }
    const label = reading.label === null ? "" : `, label ${reading.label}`;
    box.append(make("p", `predicted ${reading.predicted} (${number(reading.probability)})${label}`, "small"));
    if (!reading.tokens) {
      box.append(make("p", "The text was read in several windows, each with a map of its own.", "small"));
      return box;
    }
    const top = Math.max(...reading.weights.filter(w => w !== null), 0);
    const line = make("p", undefined, "tokens");
    line.tabIndex = 0;
    line.setAttribute("aria-label", `the text, shaded by the weights of ${data.runs[index]}`);
    reading.tokens.forEach((token, i) => {
      const weight = reading.weights[i], word = make("span", token);
      word.style.setProperty("--w", weight > 0 && top > 0 ? (weight / top).toFixed(3) : "0");
      word.title = number(weight);
      word.dataset.word = i;
      line.append(word, " ");
    });
    box.append(line, make("p", `largest weight ${number(top)}`, "small"));
    return box;
  };

  const changes = text => {
    const [a, b] = runs.map(run => text.runs[run.value]), [p, q] = [shares(a), shares(b)];
    const d = distance(text);
    if (d === null) {
      if (!a || !b) return "One of the runs did not audit this text.";
      if (!a.tokens || !b.tokens) return "Not compared: read in several windows.";
      if (!sameTokens(a.tokens, b.tokens)) return "Not compared: the runs read other tokens of this text.";
      if (!p || !q) return "Not compared: a weight is undefined or negative, or all are 0.";
      return "Not compared: the only token has all the weight.";
    }
    const most = p.map((w, i) => i).sort((i, j) => Math.abs(p[j] - q[j]) - Math.abs(p[i] - q[i])).slice(0, 5);
    const listed = most.map(i => `“${a.tokens[i]}” ${number(p[i])} and ${number(q[i])}`).join("; ");
    return `${(100 * d).toFixed(0)} % of the weight lies on other words. Words that change most: ${listed}.`;
  };

  const draw = () => {
    const text = data.texts[list.value], place = at("two-maps");
    if (!text) {
      place.replaceChildren(make("p", "No text has these letters.", "hint"));
      at("map-change").textContent = at("text-name").textContent = at("word-weights").textContent = "";
      return;
    }
    at("text-name").textContent = text.name + (text.query ? `, given: ${text.query}` : "");
    at("map-change").textContent = changes(text);
    at("word-weights").textContent = "Point at a word, or touch it, to see its weights.";
    place.replaceChildren(...runs.map(run => map(text, run.value)));
    // Not location.hash, which would scroll and fill the history; a frame of a notebook has no history.
    try { history.replaceState(null, "", `#text=${text.id}&first=${runs[0].value}&second=${runs[1].value}`); }
    catch { /* the choice is not kept */ }
  };

  const point = event => {
    const word = event.target.closest("[data-word]");
    if (!word) return;
    const text = data.texts[list.value], i = word.dataset.word;
    const said = runs.map(run => {
      const reading = text.runs[run.value];
      const has = reading && reading.tokens && i < reading.tokens.length;
      return `${data.runs[run.value]}: ${has ? `“${reading.tokens[i]}” ${number(reading.weights[i])}` : "–"}`;
    });
    at("word-weights").textContent = said.join("; ");
  };

  const restore = () => {
    const choice = new URLSearchParams(location.hash.slice(1));
    const wanted = data.texts.findIndex(text => String(text.id) === choice.get("text"));
    [["first", 0], ["second", 1]].forEach(([name, i]) => {
      if (choice.get(name) in data.runs) runs[i].value = choice.get(name);
    });
    if (wanted >= 0) search.value = "";
    fill();
    if (wanted >= 0) { list.value = wanted; draw(); }
    return wanted >= 0;
  };

  data.runs.forEach((name, i) => runs.forEach(run => {
    const option = make("option", name);
    option.value = i;
    run.append(option);
  }));
  runs[1].value = 1;
  runs.forEach(run => run.addEventListener("change", fill));
  search.addEventListener("input", fill);
  list.addEventListener("change", draw);
  ["pointerover", "click"].forEach(kind => at("two-maps").addEventListener(kind, point));
  addEventListener("hashchange", () => { if (restore()) at("maps").scrollIntoView(); });
  if (restore()) at("maps").scrollIntoView();
  document.querySelectorAll(".needs-script").forEach(element => { element.hidden = false; });
})();
"""
