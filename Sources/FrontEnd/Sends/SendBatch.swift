import FanfareCore

/// A batch of sends: one line each, and one answer each in the same order.
struct SendBatch {
  /// The state of a line.
  private enum Line {
    case unread(ArraySlice<UInt8>)
    case read(Submission)
    case accepted(SendID)
    case refused(Refusal)
  }

  /// Fewer bytes than the shortest valid line, `{"to":{"tag":"a"},"native":{"wns":"a"}}`.
  private static let minimumLineSize = 32

  private var lines: [Line] = []
  private let maximumLineSize: Int

  /// Splits a body into lines.
  /// Blank lines count, so that answers can be counted off, except those at the end.
  ///
  /// Throws `.tooLarge` for more lines than a batch of `maximumSize` bytes can have sends. Each refused line is
  /// answered with hundreds of bytes: a body of line feeds must not be answered with hundreds of times its size.
  init(_ body: ArraySlice<UInt8>, maximumSize: Int, maximumLineSize: Int) throws(Refusal) {
    self.maximumLineSize = maximumLineSize
    var rest = body[..<(body.lastIndex { !Self.isBlank($0) }.map { $0 + 1 } ?? body.startIndex)]
    let most = maximumSize / Self.minimumLineSize
    while !rest.isEmpty {
      guard lines.count < most else { throw Refusal(.tooLarge, "the batch has more than \(most) lines") }
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      lines.append(.unread(rest[rest.startIndex..<end]))
      rest = end == rest.endIndex ? [] : rest[(end + 1)...]
    }
  }

  var isEmpty: Bool { lines.isEmpty }

  /// Reads and validates every line.
  mutating func read(from origin: SendOrigin, isRepeatable: Bool) {
    for index in lines.indices {
      guard case .unread(let bytes) = lines[index] else { continue }
      guard bytes.count <= maximumLineSize else {
        lines[index] = .refused(Refusal(.tooLarge, "the line has more than \(maximumLineSize) bytes"))
        continue
      }
      do throws(Refusal) {
        lines[index] = .read(try Submission(reading: bytes, from: origin, isRepeatable: isRepeatable))
      } catch {
        lines[index] = .refused(error)
      }
    }
  }

  /// Gives every valid line the id that it has under the claim.
  mutating func identify(by claim: SendClaim) {
    for index in lines.indices {
      if case .read(let send) = lines[index] { lines[index] = .read(send.identified(as: claim.sendID(line: index))) }
    }
  }

  /// The sends of the valid lines, in order.
  var submissions: [Submission] {
    lines.compactMap { if case .read(let send) = $0 { send } else { nil } }
  }

  /// Records the results of `submissions`.
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

  /// Counts the refused lines.
  func countRefusals(in metrics: HubMetrics) {
    for case .refused(let refusal) in lines { metrics.refuse(refusal.code) }
  }

  /// Returns one line per line: `{"id":…}`, or `{"error":…}` with the problem document of that send.
  func answer(requestID: String) -> [UInt8] {
    var writer = JSONWriter(capacity: lines.count * 48)
    for line in lines {
      writer.object {
        switch line {
        case .accepted(let id): $0.member("id", id)
        case .refused(let refusal):
          $0.member("error", json: Problem(refusal: refusal, requestID: requestID).document)
        // `read` leaves no line unread and `settle` leaves none read. A missing answer would shift all later ones.
        case .unread, .read: fatalError("a line of a batch was neither accepted nor refused")
        }
      }
      writer.endLine()
    }
    return writer.bytes
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }
}
