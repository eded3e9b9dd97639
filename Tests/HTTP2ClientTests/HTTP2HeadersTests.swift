import HTTP2Client
import Testing

struct HTTP2HeadersTests {
  @Test func fieldsKeepTheirOrder() {
    var headers: HTTP2Headers = ["a": "1", "b": ""]
    headers.append("c", String(repeating: "x", count: 70_000), indexing: .never)
    headers.append(name: Array("a".utf8), value: Array("2".utf8))
    #expect(headers.map(\.name) == ["a", "b", "c", "a"])
    #expect(headers.map(\.value.count) == [1, 0, 70_000, 1])
    #expect(headers["a"] == "1")
    #expect(headers["b"] == "")
    #expect(headers["d"] == nil)
    #expect(headers.count == 4)
  }

  @Test func sizeIsCountedAsThePeerCountsIt() {
    // RFC 9113 section 6.5.2: name, value and 32 bytes for each field.
    let headers: HTTP2Headers = [":path": "/1", "x": ""]
    #expect(headers.listSize == (5 + 2 + 32) + (1 + 0 + 32))
  }

  @Test func copiesAreIndependent() {
    let original: HTTP2Headers = ["a": "1"]
    var copy = original
    copy.append(contentsOf: ["b": "2"])
    #expect(original.count == 1)
    #expect(copy["b"] == "2")
  }
}
