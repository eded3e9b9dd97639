/// Several consecutive pages of a broadcast, walked by one worker: the record of the segments
/// topic.
///
/// A broadcast is divided into `pages` equal slices of the id space of registrations (`RegistrationSlice.page`),
/// whichever ids are registered. A page that is repeated after a crash is therefore the same page, and its status
/// record, part `page` of `pages`, counts once.
package struct SegmentRecord: Hashable, Sendable {
  /// The send, as it was accepted.
  package let send: SendRequest
  /// The number of pages of the whole broadcast.
  package let pages: Int
  /// The segment's pages.
  package let range: Range<Int>

  package init(send: SendRequest, pages: Int, range: Range<Int>) {
    self.send = send
    self.pages = pages
    self.range = range
  }

  /// The attempt of the status records of the broadcast's pages.
  /// Equal for all workers and repetitions.
  package static func attempt(of send: SendRequest) -> DispatchID {
    DispatchID(high: send.identity.high, low: send.identity.low)
  }

  /// Identifies the segment. Equal however often it is written.
  package var identity: SendID {
    // The multiplier spreads small numbers over the word (Knuth's constant).
    let number = UInt64(truncatingIfNeeded: range.lowerBound + 1) &* 0x9E37_79B9_7F4A_7C15
    return SendID(high: send.identity.high ^ 0x5E67_4E74, low: send.identity.low ^ number)
  }

  /// The pages of a segment of a broadcast with `count` segments.
  package static func range(ofSegment number: Int, of count: Int, pages: Int) -> Range<Int> {
    pages * number / count..<pages * (number + 1) / count
  }

  /// The segments of a broadcast: at most `count`, of nearly equal size.
  package static func divide(_ send: SendRequest, pages: Int, into count: Int) -> [SegmentRecord] {
    let count = max(1, min(count, pages))
    return (0..<count).map { number in
      SegmentRecord(send: send, pages: pages, range: range(ofSegment: number, of: count, pages: pages))
    }
  }
}
