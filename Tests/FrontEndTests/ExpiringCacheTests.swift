import Testing

@testable import FrontEnd

struct ExpiringCacheTests {
  @Test func cacheIsBoundedAndKeepsWhatIsUsed() {
    var cache = ExpiringCache<Int, Int, Int>(capacity: 100)
    for number in 0..<10_000 {
      cache[number] = number
      let used = cache[0]
      #expect(used == 0)
      #expect(cache.count <= 101)
    }
    let found = [1, 9_960, 9_999].map { cache[$0] }
    #expect(found == [nil, 9_960, 9_999])
    cache[0] = nil
    let removed = cache[0]
    #expect(removed == nil)
    cache.removeAll()
    #expect(cache.count == 0)
  }

  @Test func valueIsForgottenAtItsEndAndBeforeItsBeginning() {
    var cache = ExpiringCache<Int, String, Int>(capacity: 10)
    cache.insert("a", for: 1, from: 100, to: 110)
    let found = [99, 100, 109, 110].map { cache.value(1, at: $0) }
    #expect(found == [nil, "a", "a", nil], "a clock that is set back does not prolong it")
    cache.insert("b", for: 1, from: 105, to: 120)
    let later = cache.value(1, at: 110)
    #expect(later == "b")
  }
}
