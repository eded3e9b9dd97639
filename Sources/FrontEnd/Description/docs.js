// Renders /openapi.json. All text goes into the page as text nodes, never as HTML.

const METHODS = ["get", "post", "put", "patch", "delete"];
const byID = (id) => document.getElementById(id);
let api;

/** Creates an element. Children are elements and texts; null is left out. */
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/** A description with `code` between backticks. */
const prose = (text) =>
  (text ?? "").split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));

/** The object, or the target of its reference with the members beside the reference. */
function resolve(value) {
  if (!value?.$ref) return value;
  const target = value.$ref.slice(2).split("/").reduce((node, name) => node[name], api);
  return { ...resolve(target), ...value, $ref: undefined };
}

/** The name of a schema that is a reference. */
const nameOf = (schema) => (schema?.$ref ? schema.$ref.split("/").pop() : null);

// Schemas

const LIMITS = {
  minLength: "at least {} characters", maxLength: "at most {} characters", "x-maxBytes": "at most {} bytes",
  minItems: "at least {} elements", maxItems: "at most {} elements", minimum: "≥ {}", maximum: "≤ {}",
  default: "default {}", pattern: "matches {}",
};

function typeOf(schema) {
  const whole = resolve(schema) ?? {};
  if (whole.const !== undefined) return JSON.stringify(whole.const);
  const type = [whole.type].flat().filter(Boolean).join(" or ");
  if (type === "array") return `array of ${typeOf(whole.items)}`;
  const named = nameOf(schema);
  if (type === "object") return named ?? "object";
  const alternatives = whole.oneOf ?? whole.anyOf;
  if (!type && alternatives) return alternatives.map(typeOf).join(" or ");
  return (type || (whole.enum ? "string" : "any")) + (whole.format ? ` (${whole.format})` : "");
}

function limitsOf(schema) {
  const found = Object.entries(LIMITS).filter(([key]) => schema[key] !== undefined)
    .map(([key, text]) => text.replace("{}", () => key === "default" ? JSON.stringify(schema[key]) : schema[key]));
  if (schema.enum) found.push(`one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`);
  return found.join(" · ");
}

/** The members of an object, of an array's elements, or of the alternatives of a schema. */
function members(schema) {
  const whole = resolve(schema) ?? {};
  if (whole.type === "array") return members(whole.items);
  const own = Object.entries(whole.properties ?? {}).map(([name, member]) =>
    entry(name, member, whole.required?.includes(name)));
  if (whole.additionalProperties?.type || whole.additionalProperties?.$ref) {
    own.push(entry("any name", whole.additionalProperties, false));
  }
  if (own.length) return own;
  return (whole.oneOf ?? whole.anyOf ?? []).filter((one) => members(one).length)
    .map((one, index) => entry(nameOf(one) ?? `alternative ${index + 1}`, one, false));
}

function entry(name, schema, isRequired) {
  const whole = resolve(schema) ?? {};
  const limits = limitsOf(whole);
  const item = element("li", {},
    element("code", {}, name), " ", element("span", { class: "type" }, typeOf(schema)),
    isRequired ? [" ", element("span", { class: "required" }, "required")] : null,
    whole.description ? element("p", {}, prose(whole.description)) : null,
    limits ? element("p", { class: "type" }, limits) : null);
  const hasMembers = (function has(one, depth) {
    const target = resolve(one) ?? {};
    return depth < 4 && Boolean(target.properties || (target.items && has(target.items, depth + 1))
      || target.additionalProperties?.$ref || target.additionalProperties?.type
      || (target.oneOf ?? target.anyOf ?? []).some((alternative) => has(alternative, depth + 1)));
  })(schema, 0);
  // Built when it is opened: schemas may refer to themselves.
  if (hasMembers) item.append(later("Members", () => element("ul", {}, members(schema))));
  return item;
}

function later(title, build, attributes = {}) {
  const details = element("details", attributes, element("summary", {}, title));
  details.addEventListener("toggle", () => details.children.length > 1 || details.append(build()));
  return details;
}

function schemaOf(schema) {
  const whole = resolve(schema) ?? {};
  const list = members(schema);
  const name = nameOf(schema);
  return [
    element("p", {}, element("span", { class: "type" }, name && !typeOf(schema).includes(name) ? `${name}, ` : "",
      typeOf(schema)), whole.description ? [". ", ...prose(whole.description)] : null),
    list.length ? element("ul", { class: "schema" }, list) : null,
  ];
}

// Examples

function examplesOf(media) {
  if (media.example !== undefined) return [{ value: media.example }];
  return Object.entries(media.examples ?? {}).map(([name, example]) => ({ ...resolve(example), name }));
}

const textOf = (type, value) =>
  type.endsWith("json") && !type.endsWith("ndjson") ? JSON.stringify(value, null, 2) : String(value).trimEnd();

function figure(title, text) {
  const copy = element("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not allowed";
    }
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  return element("figure", {}, element("figcaption", {}, prose(title)),
    element("pre", { tabindex: "0", role: "region", "aria-label": title }, text), copy);
}

/** A command that makes the request with the first example of its body. */
function curl(operation) {
  const parameters = operation.parameters;
  let path = operation.path;
  const query = [];
  for (const parameter of parameters) {
    const example = parameter.example ?? parameter.schema?.example ?? `{${parameter.name}}`;
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, example);
    if (parameter.in === "query" && parameter.required) {
      query.push(`${parameter.name}=${encodeURIComponent(example)}`);
    }
  }
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const lines = ["curl -sS"];
  if (operation.method !== "get") lines[0] += ` -X ${operation.method.toUpperCase()}`;
  if (operation.security.length) lines.push("-u USER:PASSWORD");
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const example = media && examplesOf(media)[0];
  if (example) {
    lines.push(`-H ${quoted(`Content-Type: ${type}`)}`, `--data-binary ${quoted(textOf(type, example.value))}`);
  }
  lines.push(quoted(location.origin + path + (query.length ? `?${query.join("&")}` : "")));
  return lines.join(" \\\n  ");
}

// Operations

/** All operations in the order of the groups. */
function operations() {
  return Object.entries(api.paths).flatMap(([path, item]) => METHODS.filter((method) => item[method]).map((method) => {
    const own = item[method];
    return {
      ...own, path, method,
      parameters: [...(item.parameters ?? []), ...(own.parameters ?? [])].map(resolve),
      requestBody: resolve(own.requestBody),
      security: own.security ?? api.security ?? [],
    };
  }));
}

function codesOf(operation) {
  return Object.entries(operation.responses).flatMap(([status, response]) => {
    const schema = resolve(response).content?.["application/problem+json"]?.schema?.properties?.code ?? {};
    return (schema.enum ?? [schema.const]).filter(Boolean).map((code) => ({ status, code }));
  });
}

function scopesOf(operation) {
  if (!operation.security.length) return "Needs no credentials.";
  const sets = operation.security.map((one) => Object.values(one)[0].join(" and "));
  const distinct = [...new Set(sets)].filter(Boolean);
  return distinct.length ? `Needs the scope ${distinct.map((one) => `\`${one}\``).join(" or ")}.` : "Needs credentials.";
}

function parametersOf(operation) {
  if (!operation.parameters.length) return [];
  const rows = operation.parameters.map((one) => element("tr", {},
    element("th", { scope: "row" }, element("code", {}, one.name),
      one.required ? [" ", element("span", { class: "required" }, "required")] : null),
    element("td", {}, one.in),
    element("td", {}, prose(one.description), " ",
      element("span", { class: "type" }, [typeOf(one.schema), limitsOf(resolve(one.schema) ?? {})].filter(Boolean)
        .join(" · ")),
      one.example !== undefined ? [" Example: ", element("code", {}, String(one.example))] : null)));
  return [element("h4", {}, "Parameters"),
    element("table", { class: "parameters" },
      element("thead", {}, element("tr", {}, ["Name", "In", "Meaning"].map((title) =>
        element("th", { scope: "col" }, title)))),
      element("tbody", {}, rows))];
}

function bodyOf(body) {
  if (!body) return [];
  return [element("h4", {}, body.required ? "Body" : "Body, optional"), body.description
    ? element("p", {}, prose(body.description)) : null,
  Object.entries(body.content).map(([type, media]) => [
    element("p", {}, element("code", {}, type)), media.schema ? schemaOf(media.schema) : null,
    examplesOf(media).map((example) =>
      figure(example.summary ?? (example.name ? `Example: ${example.name}` : "Example"), textOf(type, example.value))),
  ])];
}

function answerOf(status, response) {
  const whole = resolve(response);
  const isGood = status < "400";
  const details = later([element("code", {}, status), " ", ...prose(whole.description)], () => element("div", {},
    Object.entries(whole.headers ?? {}).map(([name, header]) => element("p", {},
      "Header ", element("code", {}, name), ": ", prose(resolve(header).description))),
    Object.entries(whole.content ?? {}).map(([type, media]) => [
      element("p", {}, element("code", {}, type)), media.schema && isGood ? schemaOf(media.schema) : null,
      examplesOf(media).map((example) =>
        figure(example.summary ?? (example.name ? `Example: ${example.name}` : "Example"), textOf(type, example.value))),
    ])), { class: "answer" });
  if (isGood) details.open = true;
  return details;
}

function articleOf(operation) {
  const meaning = api.components.schemas.ProblemCode["x-enumDescriptions"];
  const codes = codesOf(operation);
  return element("article", { id: operation.operationId, "aria-labelledby": `${operation.operationId}-title` },
    element("h3", { id: `${operation.operationId}-title` }, element("a", { href: `#${operation.operationId}` },
      element("span", { class: `method ${operation.method}` }, operation.method.toUpperCase()), " ",
      element("span", { class: "path" }, operation.path))),
    element("p", {}, prose(operation.summary)),
    operation.description ? element("p", { class: "quiet" }, prose(operation.description)) : null,
    element("p", { class: "quiet" }, prose(scopesOf(operation))),
    figure("curl", curl(operation)),
    parametersOf(operation), bodyOf(operation.requestBody),
    element("h4", {}, "Answers"),
    Object.entries(operation.responses).map(([status, response]) => answerOf(status, response)),
    codes.length ? later(`Error codes (${codes.length})`, () => element("table", {}, element("tbody", {},
      codes.map(({ code }) => element("tr", {}, element("th", { scope: "row" }, element("code", {}, code)),
        element("td", {}, meaning[code] ?? ""))))), { class: "answer codes" }) : null);
}

function overview() {
  const schemes = Object.entries(api.components.securitySchemes);
  const codes = Object.entries(api.components.schemas.ProblemCode["x-enumDescriptions"]);
  return element("section", { id: "overview" },
    element("h2", {}, "Overview"),
    element("p", {}, api.info.summary), element("p", {}, prose(api.info.description)),
    element("h4", {}, "Addresses"),
    element("ul", {}, api.servers.map((server) => element("li", {},
      element("code", {}, location.origin + server.url), " ", prose(server.description)))),
    element("h4", {}, "Credentials"),
    element("ul", {}, schemes.map(([name, scheme]) => element("li", {},
      element("code", {}, name), " ", prose(scheme.description)))),
    later(`All error codes (${codes.length})`, () => element("table", {}, element("tbody", {},
      codes.map(([code, text]) => element("tr", {}, element("th", { scope: "row" }, element("code", {}, code)),
        element("td", {}, text))))), { class: "answer" }));
}

// The page

function render() {
  const all = operations();
  const words = new Map();
  const [content, routes] = [byID("content"), byID("routes")];
  content.replaceChildren(overview());
  for (const tag of api.tags) {
    const own = all.filter((operation) => operation.tags?.[0] === tag.name);
    if (!own.length) continue;
    content.append(element("section", { "data-group": tag.name }, element("h2", {}, tag.name),
      element("p", { class: "quiet" }, prose(tag.description)), own.map(articleOf)));
    routes.append(element("section", { "data-group": tag.name }, element("h2", {}, tag.name), element("ul", {},
      own.map((operation) => element("li", { "data-for": operation.operationId },
        element("a", { href: `#${operation.operationId}` },
          element("span", { class: `method ${operation.method}` }, operation.method.toUpperCase()),
          element("span", { class: "path" }, operation.path)))))));
    for (const operation of own) {
      words.set(operation.operationId, [
        operation.method, operation.path, operation.operationId, operation.summary, operation.description, tag.name,
        ...operation.parameters.map((one) => one.name), ...codesOf(operation).map((one) => one.code),
        JSON.stringify(Object.values(operation.requestBody?.content ?? {}).map((media) => resolve(media.schema))),
      ].join(" ").toLowerCase());
    }
  }
  search(words);
  followReading();
  byID("version").textContent = api.info.version;
  // The target did not exist when the browser looked for it.
  if (location.hash) byID(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
}

function search(words) {
  const query = byID("query");
  const update = () => {
    const terms = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const [id, text] of words) {
      const isFound = terms.every((term) => text.includes(term));
      count += isFound ? 1 : 0;
      byID(id).hidden = !isFound;
      document.querySelector(`[data-for="${id}"]`).hidden = !isFound;
    }
    byID("overview").hidden = terms.length > 0;
    for (const group of document.querySelectorAll("[data-group]")) {
      group.hidden = !group.querySelector("article:not([hidden]), li:not([hidden])");
    }
    byID("found").textContent = terms.length ? (count === 1 ? "1 route" : `${count} routes`) : "";
  };
  query.addEventListener("input", update);
  byID("search").addEventListener("submit", (event) => {
    event.preventDefault();
    document.querySelector("main article:not([hidden]) h3 a")?.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== query && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      query.focus();
    } else if (event.key === "Escape" && document.activeElement === query) {
      query.value = "";
      update();
    }
  });
}

/** Marks the route that is being read, and opens the menu where there is room for it. */
function followReading() {
  const menu = byID("menu");
  const isWide = matchMedia("(min-width: 52rem)");
  const adapt = () => (menu.open = isWide.matches);
  isWide.addEventListener("change", adapt);
  adapt();
  menu.addEventListener("click", (event) => {
    if (event.target.closest("a") && !isWide.matches) menu.open = false;
  });
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      for (const link of document.querySelectorAll("nav [aria-current]")) link.removeAttribute("aria-current");
      document.querySelector(`[data-for="${target.id}"] a`)?.setAttribute("aria-current", "location");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const article of document.querySelectorAll("main article")) observer.observe(article);
}

try {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`status ${response.status}`);
  api = await response.json();
  render();
} catch (error) {
  byID("content").replaceChildren(element("p", { role: "alert" },
    `The description could not be loaded (${error.message}). Reload the page to try again.`));
}
