import FanfareCore
import Testing

/// The template language: grammar, values, and the places where it applies.
@Suite struct TemplateTests {
  /// Expression, value of the property `p` and the rendered text.
  static let values: [(String, String, String)] = [
    ("$(p)", "a \"b\" <c>", "a \"b\" <c>"),
    ("$(P)", "case", "case"),
    ("$( p )", "spaces", "spaces"),
    ("$(p, 3)", "abcdef", "abc"),
    ("$(p,0)", "abc", ""),
    ("$(p, 9)", "abc", "abc"),
    (".(p, 5)", "abcdef", "ab..."),
    (".(p, 6)", "abcdef", "abcdef"),
    (".(p, 2)", "abcdef", ".."),
    ("%(p)", "a b/ü~", "a%20b%2F%C3%BC~"),
    ("#(p)", "12", "12"),
    ("$(q)", "unused", ""),
    ("$(q:{no \\} \\\\ value})", "unused", "no } \\ value"),
    ("$(q:{abcdef}, 2)", "unused", "ab"),
    (".(q:{abcdef}, 5)", "unused", "ab..."),
    ("$(p, 3)", "a😀b", "a😀"),
    ("$(p, 2)", "a😀b", "a"),
    ("{'Hello ' + $(p)}", "Bob", "Hello Bob"),
    ("{ 'it''s ' + \"a \"\"b\"\"\" + ' ' + %(p) }", "c d", "it's a \"b\" c%20d"),
    ("{$(p)}", "alone", "alone"),
    ("Hello $(p)", "no", "Hello $(p)"),
    ("", "no", ""),
    (" $(p)", "no", " $(p)"),
  ]

  @Test(arguments: values) func value_of_an_expression(_ source: String, _ value: String, _ expected: String) throws {
    let template = try Template(source, .text)
    #expect(try text(template, ["p": value]) == expected)
  }

  /// Expression, the character at which it is wrong and a part of the problem.
  static let errors: [(String, Int, String)] = [
    ("$p", 2, "must be '('"),
    ("$5", 2, "{'$…'}"),
    ("$()", 3, "property's name"),
    ("$(a-b)", 4, "must be ')'"),
    ("$(p", 4, "must be ')'"),
    ("$(p, x)", 6, "whole number"),
    ("$(p, -1)", 6, "whole number"),
    ("$(p) and more", 6, "must end here"),
    (".(p)", 4, "must be ',' and a length"),
    ("%(p, 2)", 4, "takes no length"),
    ("#(p, 2)", 4, "takes no length"),
    ("$body", 2, "must be '('"),
    ("{#(p)}", 2, "must not be #()"),
    ("{'a' $(p)}", 6, "must be '+' or '}'"),
    ("{'a + $(p)}", 2, "without a closing quote"),
    ("{'a' + }", 8, "must be $(), .(), %() or a quoted text"),
    ("{$(p)", 6, "must be '+' or '}'"),
    ("$(p:{x", 5, "without a closing brace"),
    ("$(p:x)", 5, "must be '{'"),
  ]

  @Test(arguments: errors) func error_points_at_the_character(_ source: String, _ character: Int, _ problem: String) {
    let error = #expect(throws: TemplateError.self) { try Template(source, .text) }
    #expect(error?.character == character)
    #expect(error?.problem.contains(problem) == true, "\(error?.description ?? "")")
  }

  @Test func json_values_are_expressions_and_names_are_not() throws {
    let template = try Template(
      ##"{"aps": {"alert":"$(p)","badge":"#(n)","n":1}, "$(p)": ["{'a' + $(p)}", null, "plain"]}"##, .json)
    #expect(
      try text(template, ["p": "say \"hi\"\n", "n": "1.5e3"])
        == #"{"aps": {"alert":"say \"hi\"\n","badge":1.5e3,"n":1}, "$(p)": ["asay \"hi\"\n", null, "plain"]}"#)
    for number in ["0", "-1", "-0.5e-7", "12345678901234567890"] {
      #expect(try text(try Template(##"{"n":"#(n)"}"##, .json), ["n": number]) == #"{"n":\#(number)}"#)
    }
    #expect(template.names == ["p", "n"])
  }

  @Test(arguments: ["", "01", "1.", "-", "-01", "+1", "--1", "1e", "0x1", "1 ", "1,\"a\":2", "NaN", "١"])
  func text_that_is_no_number_stays_a_string(_ value: String) throws {
    let template = try Template(##"{"n":"#(n)"}"##, .json)
    var reader = try JSONReader(try template.render(TemplateValues(properties: ["n": value]))[...])
    try reader.readObject { (_, reader) throws(JSONError) in #expect(try reader.readString() == value) }
    try reader.finish()
  }

  @Test func xml_attributes_and_texts_are_expressions() throws {
    let template = try Template(
      """
      <?xml version="1.0"?><!-- $(p) --><toast launch='{"a&quot;&quot;" + $(p)}'><text id="1">$(p)</text>\
      <text><![CDATA[$(p)]]></text><text>plain &amp; &#36;</text><image src="%(p)"/></toast>
      """, .xml)
    #expect(
      try text(template, ["p": "<'&\">"]) == """
        <?xml version="1.0"?><!-- $(p) --><toast launch='a&quot;&lt;&apos;&amp;&quot;&gt;'>\
        <text id="1">&lt;&apos;&amp;&quot;&gt;</text>\
        <text>&lt;&apos;&amp;&quot;&gt;</text><text>plain &amp; &#36;</text><image src="%3C%27%26%22%3E"/></toast>
        """)
  }

  @Test(arguments: [
    (#"{"aps":{"alert":"$(p"}}"#, "aps.alert, character 4 must be ')'"),
    (#"{"a":["x","$"]}"#, "a[1], character 2 must be '(' after $; literal text is written {'$…'}"),
    (#"{"a":}"#, "is not JSON at byte 5"),
  ])
  func json_error_names_the_member(_ source: String, _ expected: String) {
    let error = #expect(throws: TemplateError.self) { try Template(source, .json) }
    #expect(error?.description == expected)
  }

  @Test(arguments: [
    ("<a><b c=\"$(p\"/></a>", "a.b.@c, character 4 must be ')'"),
    ("<a>$</a>", "a, character 2 must be '(' after $; literal text is written {'$…'}"),
    ("<a><b></a></b>", "a.b must have the end tag of the open element at byte 9"),
    ("<a>", "a must have an end tag"),
    ("<a/><b/>", "must have one root element"),
    ("<a/>text", "must have no text outside its root element"),
    ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "must not have a document type"),
    ("<a>&b;</a>", "a has an '&' that begins no reference to a character"),
    ("<a b=c/>", "a must have a quoted value at byte 5"),
    ("<a b=\"<\"/>", "a must have a closing quote at byte 5"),
    ("<a b=\"1\"c=\"2\"/>", "a must have white space before an attribute at byte 8"),
  ])
  func xml_error_names_the_element(_ source: String, _ expected: String) {
    let error = #expect(throws: TemplateError.self) { try Template(source, .xml) }
    #expect(error?.description == expected)
  }

  /// The clients of Azure set expiry and priority by expressions.
  @Test func headerWithoutAValueIsLeftOut() throws {
    let headers = ["apns-expiration": "$(when)", "apns-priority": "{$(priority)}", "apns-push-type": "alert"]
    let template = try DeviceTemplate(body: "{}", headers: headers).compiled(for: .apns)
    func rendered(_ properties: [String: String]) throws -> [String: String] {
      try template.render(for: .apns, TemplateValues(properties: properties)).headers
    }
    #expect(try rendered([:]) == ["apns-push-type": "alert"])
    #expect(try rendered(["when": "", "priority": " "]) == ["apns-push-type": "alert"])
    #expect(try rendered(["priority": "5"]) == ["apns-push-type": "alert", "apns-priority": "5"])
  }

  @Test(arguments: [
    ("iw", "he"), ("iw-IL", "he"), ("iw_IL", "he"), ("in", "id"), ("ji", "yi"), ("no", "nb"), ("no-NO", "nb"),
    ("tl", "fil"), ("tl-PH", "fil"), ("he", "iw"), ("he-IL", "iw"), ("id", "in"), ("yi", "ji"), ("nb-NO", "no"),
    ("fil-PH", "tl"), ("nb", "nb"), ("inn", "xx"), ("nn", "xx"), ("t", "xx"),
  ])
  func languageHasItsFormerCodeToo(device: String, expected: String) {
    let variants = Dictionary(["xx", expected].map { ($0, Content()) }) { first, _ in first }
    let template = HubTemplate(
      name: "t", version: 1, createdAt: UnixTime(milliseconds: 0), defaultLocale: "xx", variants: variants)
    #expect(template.locale(for: device) == expected)
  }

  @Test func codeThatTheDeviceReportsComesFirst() {
    let template = HubTemplate(
      name: "t", version: 1, createdAt: UnixTime(milliseconds: 0), defaultLocale: "en",
      variants: ["en": Content(), "he": Content(), "iw": Content(), "nb-no": Content(), "no": Content()])
    for (device, expected) in [("iw", "iw"), ("he", "he"), ("no-NO", "nb-no"), ("no", "no"), ("nb", "no")] {
      #expect(template.locale(for: device) == expected)
    }
  }

  /// A template that inserts one value 2,000 times: 120 MB for 10 KB of apostrophes in XML.
  @Test(arguments: [(Platform.apns, 4096), (.fcm, 40_960), (.wns, 5000)])
  func renderingStopsAtTheLimit(_ platform: Platform, _ limit: Int) throws {
    let value = "{" + Array(repeating: "$(a)", count: 2000).joined(separator: "+") + "}"
    let body = platform == .wns ? "<toast>\(value)</toast>" : #"{"a":"\#(value)"}"#
    let template = try DeviceTemplate(body: body).compiled(for: platform)
    let hostile = TemplateValues(properties: ["a": String(repeating: platform == .wns ? "'" : "\u{1}", count: 10_000)])
    #expect(throws: PushOutcome.payloadTooLarge) { try template.render(for: platform, hostile) }
    #expect(throws: Never.self) { try template.render(for: platform, TemplateValues(properties: [:])) }

    let single = try DeviceTemplate(body: body.replacing(value, with: "$(a)")).compiled(for: platform)
    func renderSingle(_ size: Int) throws -> Content {
      let length = size - (body.utf8.count - value.utf8.count)
      return try single.render(
        for: platform, TemplateValues(properties: ["a": String(repeating: "x", count: length)]))
    }
    #expect(throws: Never.self) { try renderSingle(limit) }
    #expect(throws: PushOutcome.payloadTooLarge) { try renderSingle(limit + 1) }
  }

  /// Many texts that fit alone do not fit together.
  @Test func textsOfAMessageShareTheLimit() throws {
    let data = Dictionary(uniqueKeysWithValues: (0..<100).map { ("key\($0)", "$(a)") })
    let template = try ContentTemplate(Content(message: Message(title: "$(a)", body: "{$(a) + $(a)}", data: data)))
    func render(_ length: Int) throws -> Content {
      try template.render(for: .wns, TemplateValues(properties: ["a": String(repeating: "x", count: length)]))
    }
    #expect(try render(48).message?.data.count == 100)
    #expect(throws: PushOutcome.payloadTooLarge) { try render(49) }
  }

  private func text(_ template: Template, _ properties: [String: String]) throws -> String {
    String(decoding: try template.render(TemplateValues(properties: properties)), as: UTF8.self)
  }
}
