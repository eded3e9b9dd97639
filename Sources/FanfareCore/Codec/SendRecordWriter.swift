/// Writes records of the sends topic, one after another. Those of a batch come from one caller at one moment, which is
/// a third of each record: that is written once for as many as have it in common.
package struct SendRecordWriter {
  /// Whose `origin` is at hand.
  private var model: SendRequest?
  private var origin: [UInt8] = []

  package init() {}

  /// The record of a send: what its `encoded()` gives.
  package mutating func record(of send: SendRequest) -> [UInt8] {
    if model.map({ !Self.haveOneOrigin($0, send) }) ?? true {
      origin.removeAll(keepingCapacity: true)
      send.appendOrigin(to: &origin)
      model = send
    }
    var output: [UInt8] = []
    output.reserveCapacity(SendRequest.usualRecordSize)
    output.append(literal: CloudEvent.opening)
    send.id.append(to: &output)
    output.append(contentsOf: origin)
    send.appendMatter(to: &output)
    return output
  }

  private static func haveOneOrigin(_ one: SendRequest, _ other: SendRequest) -> Bool {
    guard one.acceptedAt == other.acceptedAt, one.hub == other.hub else { return false }
    return switch (one.sender, other.sender) {
    case (nil, nil): true
    // By bytes: names that merely look the same are written differently.
    case (let one?, let other?): one.utf8.elementsEqual(other.utf8)
    default: false
    }
  }
}
