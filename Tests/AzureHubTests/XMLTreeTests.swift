import FanfareCore
import Foundation
import FoundationXML
import Testing

@testable import AzureHub

struct XMLTreeTests {
  private func parse(_ text: String) throws(XMLError) -> XMLTree { try XMLTree(Array(text.utf8)[...]) }

  @Test func textReferencesAndSectionsAreRead() throws {
    let tree = try parse("<a><b x='1 &lt; 2'>one&amp;<![CDATA[<two>]]>&#x33;&#52;</b><b/><!-- no --><?no no?></a>")
    #expect(tree.children.map(\.text) == ["one&<two>34", ""])
    #expect(tree.children[0].attributes == ["x": "1 < 2"])
  }

  @Test(arguments: [
    "", "text", "<a>", "<a></b>", "<a/><b/>", "<a b=1/>", "<a b='<'/>", "<a>&unknown;</a>", "<a>&#0;</a>",
    "<a>&amp</a>",
    "<a><![CDATA[</a>", "<a><!-- </a>", "<1/>", "<a b='x'c='y'/>", "<a>\u{1}</a>", "<a",
    "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", "<a><!DOCTYPE a></a>",
  ])
  func malformedDocumentsAreRefused(document: String) {
    #expect(throws: XMLError.self) { try parse(document) }
  }

  @Test func depthAndNumberOfElementsAreBounded() {
    let deep = String(repeating: "<a>", count: 17) + String(repeating: "</a>", count: 17)
    #expect(throws: XMLError.self) { try parse(deep) }
    #expect(throws: XMLError.self) { try parse("<a>" + String(repeating: "<b/>", count: 5000) + "</a>") }
  }

  /// A hundred registrations with all header fields of Windows have more than 4,096 elements.
  @Test func aFullPageOfRegistrationsIsRead() throws {
    let header = "<WnsHeader><Header>X-WNS-Type</Header><Value>wns/raw</Value></WnsHeader>"
    let entry =
      "<entry><title>1-1-1</title><content><WindowsTemplateRegistrationDescription>"
      + "<RegistrationId>1-1-1</RegistrationId><ChannelUri>https://db5.notify.windows.com/?token=A</ChannelUri>"
      + "<BodyTemplate>&lt;a&gt;b&lt;/a&gt;</BodyTemplate><WnsHeaders>\(String(repeating: header, count: 20))</WnsHeaders>"
      + "</WindowsTemplateRegistrationDescription></content></entry>"
    let feed = "<feed>\(String(repeating: entry, count: RegistrationListRequest.maximumTop))</feed>"
    #expect(throws: XMLError.self) { try parse(feed) }
    let page = try AzureRegistrations(feed: Array(feed.utf8)[...], at: UnixTime(milliseconds: 0))
    #expect(page.count == RegistrationListRequest.maximumTop && page.refusals.isEmpty)
  }

  /// Of random documents both parsers accept the same ones, with as much text.
  @Test func acceptedDocumentsAreThoseOfFoundation() throws {
    var generator = SplitMix64(seed: 0xA27)
    let pieces = [
      "<a>", "</a>", "<b x=\"1\">", "</b>", "<c/>", "text", "&lt;", "&#65;", "<![CDATA[x<]]>", "<!--n-->", " ",
    ]
    var accepted = 0
    for _ in 0..<3000 {
      let content = (0..<Int.random(in: 0...6, using: &generator)).map { _ in pieces.randomElement(using: &generator)! }
      let document = "<r>" + content.joined() + "</r>"
      let foundation = XMLParser(data: Data(document.utf8))
      let text = TextCollector()
      foundation.delegate = text
      let isWellFormed = foundation.parse() && foundation.parserError == nil
      do throws(XMLError) {
        let tree = try parse(document)
        #expect(isWellFormed && Self.text(tree) == text.bytes, "\(document)")
        accepted += 1
      } catch {
        #expect(!isWellFormed, "\(document)")
      }
    }
    #expect(accepted > 100)
  }

  /// The number of bytes of all text.
  private static func text(_ tree: XMLTree) -> Int {
    tree.text.utf8.count + tree.children.map(text).reduce(0, +)
  }

  private final class TextCollector: NSObject, XMLParserDelegate {
    private(set) var bytes = 0

    func parser(_ parser: XMLParser, foundCharacters string: String) { bytes += string.utf8.count }
    func parser(_ parser: XMLParser, foundCDATA block: Data) { bytes += block.count }
  }
}
