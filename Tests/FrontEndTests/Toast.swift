import Foundation
import FoundationXML

/// A toast as an XML parser sees it.
final class Toast: NSObject, XMLParserDelegate {
  private(set) var path: [String] = []
  private(set) var text = ""
  private(set) var template: String?
  private(set) var textID: String?

  /// Parses a document; nil when it is not well-formed.
  init?(_ document: String) {
    super.init()
    let parser = XMLParser(data: Data(document.utf8))
    parser.delegate = self
    guard parser.parse() else { return nil }
  }

  func parser(
    _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
    attributes: [String: String]
  ) {
    path.append(element)
    if element == "binding" { template = attributes["template"] }
    if element == "text" { textID = attributes["id"] }
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) {
    text += string
  }
}
