/// Several consecutive pages of a broadcast, which one worker walks one after another: the record of the segments
/// topic.
///
/// A broadcast is divided into `pages` equal slices of the registrations' id space (`RegistrationSlice.page`), whoever
/// is registered in them: so a page that is repeated after a crash is the same page, and its status record, part `page`
/// of `pages`, counts once.
package struct SegmentRecord: Hashable, Sendable {
  /// The send, as it was accepted.
  package let send: SendRequest
  /// How many pages the whole broadcast has.
  package let pages: Int
  /// Which of them are the segment's.
  package let range: Range<Int>

  package init(send: SendRequest, pages: Int, range: Range<Int>) {
    self.send = send
    self.pages = pages
    self.range = range
  }

  /// To which attempt at the send the status records of the broadcast's pages belong: the same whoever writes them, and
  /// however often.
  package static func attempt(of send: SendRequest) -> AttemptID {
    AttemptID(high: send.identity.high, low: send.identity.low)
  }

  /// What tells the segment from every other, and is the same however often it is written.
  package var identity: SendID {
    // The multiplier spreads small numbers over the word (Knuth's constant).
    let number = UInt64(truncatingIfNeeded: range.lowerBound + 1) &* 0x9E37_79B9_7F4A_7C15
    return SendID(high: send.identity.high ^ 0x5E67_4E74, low: send.identity.low ^ number)
  }

  /// The segments of a broadcast: at most `count`, as equal as can be.
  package static func divide(_ send: SendRequest, pages: Int, into count: Int) -> [SegmentRecord] {
    let count = max(1, min(count, pages))
    return (0..<count).map { number in
      SegmentRecord(send: send, pages: pages, range: pages * number / count..<pages * (number + 1) / count)
    }
  }
}
