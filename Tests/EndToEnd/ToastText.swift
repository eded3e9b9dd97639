import Foundation
import FoundationXML

/// The text that a toast of the template `ToastText01` shows, read by an XML parser.
final class ToastText: NSObject, XMLParserDelegate {
  private(set) var text = ""
  private var isInText = false
  private var template: String?

  /// Throws unless the XML is well-formed and a `ToastText01`.
  init(_ xml: String) throws {
    super.init()
    let parser = XMLParser(data: Data(xml.utf8))
    parser.delegate = self
    guard parser.parse(), template == "ToastText01" else { throw CocoaError(.propertyListReadCorrupt) }
  }

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
    attributes: [String: String]
  ) {
    if name == "binding" { template = attributes["template"] }
    isInText = name == "text" && attributes["id"] == "1"
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) {
    if isInText { text += string }
  }

  func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
    isInText = false
  }
}
