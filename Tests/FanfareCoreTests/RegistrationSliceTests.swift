import FanfareCore
import Support
import Testing

@Suite struct RegistrationSliceTests {
  @Test(arguments: [1, 2, 3, 7, 1000, 65_521, 65_536])
  func pagesTileTheSpaceInEqualParts(count: Int) {
    var next: RegistrationSlice? = .whole
    for number in 0..<count {
      let page = RegistrationSlice.page(number, of: count)
      #expect(next?.first == page.first)
      // Sizes differ by at most one high word.
      let size = page.last.high &- page.first.high
      let equal = UInt64.max / UInt64(count)
      #expect(max(size, equal) - min(size, equal) <= 1, "page \(number)")
      next = RegistrationSlice.whole.after(page.last)
    }
    #expect(next == nil)
    #expect(RegistrationSlice.page(count - 1, of: count).last == RegistrationSlice.whole.last)
  }

  @Test func everyIDIsOnOnePage() {
    var random = SeededGenerator(seed: 5)
    for count in [1, 3, 7, 1000] {
      for _ in 0..<100 {
        let id = RegistrationID.random(using: &random)
        #expect((0..<count).count { RegistrationSlice.page($0, of: count).contains(id) } == 1)
      }
    }
  }

  @Test func sliceAfterAnIDIsTheRest() {
    let slice = RegistrationSlice(first: RegistrationID(high: 5, low: 7), last: RegistrationID(high: 9, low: 3))
    #expect(slice.after(RegistrationID(high: 5, low: 6)) == slice)
    #expect(slice.after(RegistrationID(high: 0, low: 0)) == slice)
    #expect(slice.after(slice.first)?.first == RegistrationID(high: 5, low: 8))
    #expect(slice.after(RegistrationID(high: 6, low: .max))?.first == RegistrationID(high: 7, low: 0))
    #expect(slice.after(RegistrationID(high: 9, low: 2)) == RegistrationSlice(first: slice.last, last: slice.last))
    #expect(slice.after(slice.last) == nil)
    #expect(slice.after(RegistrationID(high: .max, low: .max)) == nil)
    #expect(RegistrationSlice.whole.after(RegistrationID(high: .max, low: .max)) == nil)
  }

  @Test func shareGrowsFromZeroToOne() {
    let half = RegistrationID(high: .max / 2, low: .max)
    #expect(RegistrationSlice.whole.share(upTo: half) == 0.5)
    #expect(RegistrationSlice.whole.share(upTo: RegistrationSlice.whole.last) == 1)
    let page = RegistrationSlice.page(1, of: 4)
    #expect(page.share(upTo: RegistrationID(high: 0, low: 0)) == 0)
    #expect(page.share(upTo: RegistrationID(high: page.first.high + 1 << 61, low: 0)) == 0.5)
    #expect(page.share(upTo: half) == 1)
    let one = RegistrationSlice(first: half, last: half)
    #expect(one.share(upTo: half) == 1)
    #expect(one.share(upTo: RegistrationID(high: 0, low: 0)) == 0)
  }
}
