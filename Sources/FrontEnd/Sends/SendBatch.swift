import FanfareCore

/// A batch of sends on its way through the front end: one line each, and one answer each in the same order.
struct SendBatch {
  /// A line's state.
  enum Line {
    case unread(ArraySlice<UInt8>)
    case read(Submission)
    case accepted(SendID)
    case refused(Refusal)
  }

  /// Fewer bytes than the shortest line that can be a send (`{"to":{"tag":"a"},"native":{"wns":"a"}}`) has.
  private static let minimumLineSize = 32

  private(set) var lines: [Line] = []
  private let maximumLineSize: Int

  /// Splits a body into lines. Blank lines at its end are not lines; elsewhere they are, so that answers can be counted
  /// off.
  ///
  /// Throws `.tooLarge` for more lines than a batch of `maximumSize` bytes has room for sends: each refused line is
  /// answered with a document of hundreds of bytes, and a body of newlines must not make the answer hundreds of times
  /// its own size.
  init(_ body: ArraySlice<UInt8>, maximumSize: Int, maximumLineSize: Int) throws(Refusal) {
    self.maximumLineSize = maximumLineSize
    var rest = body[..<(body.lastIndex { !Self.isBlank($0) }.map { $0 + 1 } ?? body.startIndex)]
    let most = maximumSize / Self.minimumLineSize
    while !rest.isEmpty {
      guard lines.count < most else {
        throw Refusal(.tooLarge, "the batch has more than \(most) lines")
      }
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      lines.append(.unread(rest[rest.startIndex..<end]))
      rest = end == rest.endIndex ? [] : rest[(end + 1)...]
    }
  }

  /// Reads every line.
  mutating func read(by caller: Caller, traceparent: String?, isRepeatable: Bool, at now: UnixTime) {
    for index in lines.indices {
      guard case .unread(let bytes) = lines[index] else { continue }
      guard bytes.count <= maximumLineSize else {
        lines[index] = .refused(Refusal(.tooLarge, "the line has more than \(maximumLineSize) bytes"))
        continue
      }
      do throws(Refusal) {
        lines[index] = .read(
          try SendBody.read(
            bytes, by: caller, traceparent: traceparent, isRepeatable: isRepeatable, at: now))
      } catch {
        lines[index] = .refused(error)
      }
    }
  }

  /// Gives every send that was read the id that its line has under the claim, however often the batch comes.
  mutating func identify(by claim: SendClaim) {
    for index in lines.indices {
      if case .read(let send) = lines[index] { lines[index] = .read(send.identified(as: claim.sendID(line: index))) }
    }
  }

  /// The sends that were read, in order.
  var submissions: [Submission] {
    lines.compactMap { if case .read(let send) = $0 { send } else { nil } }
  }

  /// Takes note of what became of `submissions`.
  mutating func settle(_ results: [Result<Void, Refusal>]) {
    var results = results.makeIterator()
    for index in lines.indices {
      guard case .read(let submission) = lines[index], let result = results.next() else { continue }
      switch result {
      case .success: lines[index] = .accepted(submission.send.id)
      case .failure(let refusal): lines[index] = .refused(refusal)
      }
    }
  }

  /// Counts the lines that were not accepted.
  func countRefusals(in metrics: HubMetrics) {
    for case .refused(let refusal) in lines { metrics.refuse(refusal.code) }
  }

  /// One line per line: `{"id":…}`, or `{"error":…}` with the problem document that the same send alone would have got.
  func answer(requestID: String) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(lines.count * 48)
    for line in lines {
      switch line {
      case .accepted(let id):
        output.append(literal: #"{"id":"#)
        output.appendJSON(id)
      case .refused(let refusal):
        output.append(literal: #"{"error":"#)
        output.append(contentsOf: Problem(refusal: refusal, requestID: requestID).document)
      // `read` leaves none unread, and `settle` none read: an answer that leaves a line out would be counted off
      // wrongly.
      case .unread, .read: fatalError("a line of a batch was neither accepted nor refused")
      }
      output.append(literal: "}\n")
    }
    return output
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }
}
