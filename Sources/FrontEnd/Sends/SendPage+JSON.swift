import FanfareCore

extension SendPage {
  /// The page as callers see it.
  var json: [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(64 + sends.count * 256)
    output.append(literal: #"{"sends":["#)
    for (index, send) in sends.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      send.appendSummary(to: &output)
    }
    output.append(literal: #"],"next":"#)
    if let next { output.appendJSON(next.cursor) } else { output.append(literal: "null") }
    output.append(UInt8(ascii: "}"))
    return output
  }
}

extension SendReport {
  /// The report as one of many: who sent it to whom, and no device by itself.
  fileprivate func appendSummary(to output: inout [UInt8]) {
    output.append(literal: #"{"id":"#)
    output.appendJSON(id)
    output.append(literal: #","sender":"#)
    output.appendJSON(sender)
    output.append(literal: #","to":"#)
    output.appendJSON(audience)
    appendStanding(to: &output)
    output.append(UInt8(ascii: "}"))
  }
}
