import Support
import Testing

@testable import HTTP2

/// The encoder's output, byte for byte.
struct HPACKEncoderTests {
  /// The block of these fields.
  private static func block(_ encoder: inout HPACKEncoder, _ headers: HTTP2Headers) -> [UInt8] {
    var block: [UInt8] = []
    encoder.announceCapacity(into: &block)
    encoder.encode(headers, into: &block)
    return block
  }

  private static func bytes(_ text: String) -> [UInt8] {
    let digits = Array(text.filter { $0 != " " })
    return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0..<$0 + 2]), radix: 16) }
  }

  @Test func encoderMatchesTheExamplesOfTheRFC() {
    // RFC 7541 appendix C.3.
    var encoder = HPACKEncoder()
    #expect(
      Self.block(&encoder, [":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com"])
        == Self.bytes("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d"))
    #expect(
      Self.block(
        &encoder,
        [
          ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com",
          "cache-control": "no-cache",
        ])
        == Self.bytes("8286 84be 5808 6e6f 2d63 6163 6865"))
    #expect(
      Self.block(
        &encoder,
        [
          ":method": "GET", ":scheme": "https", ":path": "/index.html", ":authority": "www.example.com",
          "custom-key": "custom-value",
        ]) == Self.bytes("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65"))
  }

  @Test func secretEntersNoTable() {
    // RFC 7541 appendix C.2.3.
    var encoder = HPACKEncoder()
    var headers = HTTP2Headers()
    headers.append("password", "secret", indexing: .never)
    for _ in 1...2 {
      #expect(Self.block(&encoder, headers) == Self.bytes("1008 7061 7373 776f 7264 0673 6563 7265 74"))
    }
  }

  @Test func onlyTheNameOfAVaryingFieldIsIndexed() {
    var encoder = HPACKEncoder()
    func block(_ value: String) -> [UInt8] {
      var headers = HTTP2Headers()
      headers.append("id", value, indexing: .withoutIndexing)
      return Self.block(&encoder, headers)
    }
    #expect(block("1") == Self.bytes("40 02 6964 01 31"))
    // The newest entry is 62 (15 + 47). A repeated secret value is not found in the table either, so that nothing
    // reveals it.
    for value in ["2", "1"] { #expect(block(value) == Self.bytes("0f2f 01") + Array(value.utf8)) }
  }

  @Test func smallerTableIsAnnounced() {
    var encoder = HPACKEncoder()
    let token: HTTP2Headers = ["authorization": "bearer"]
    let literal = Self.bytes("57 06") + Array("bearer".utf8)
    #expect(Self.block(&encoder, token) == literal)
    #expect(Self.block(&encoder, token) == [0xBE])
    encoder.limitTable(to: 0)
    // RFC 7541 §6.3. A field that does not fit is sent without entering the table.
    #expect(Self.block(&encoder, token) == Self.bytes("20 0f08 06") + Array("bearer".utf8))
    #expect(Self.block(&encoder, token) == Self.bytes("0f08 06") + Array("bearer".utf8))
    // The smallest size between two blocks is announced too, because the peer has evicted everything (RFC 7541 §4.2).
    encoder.limitTable(to: 4096)
    #expect(Self.block(&encoder, token) == Self.bytes("3fe1 1f") + literal)
    encoder.limitTable(to: 0)
    encoder.limitTable(to: 1 << 20)
    #expect(Self.block(&encoder, token) == Self.bytes("20 3fe1 1f") + literal)
  }

  @Test func sharedBlockIsEncodedAgainAfterTheTableChanges() {
    var encoder = HPACKEncoder()
    let shared: HTTP2Headers = [":method": "POST", "authorization": "bearer"]
    func block(_ headers: HTTP2Headers) -> [UInt8] {
      var block: [UInt8] = []
      let request = HTTP2Request(
        ticket: 0, shared: shared, headers: HTTP2Headers(path: "/1", headers), timeout: .seconds(1))
      encoder.encode(request, into: &block)
      return block
    }
    let path = Self.bytes("14 02 2f31")
    #expect(block([:]) == path + [0x83] + Self.bytes("57 06") + Array("bearer".utf8))
    for _ in 1...2 { #expect(block([:]) == path + [0x83, 0xBE]) }
    // With one more entry, the shared one is the second.
    #expect(block(["x": "y"]) == path + [0x83, 0xBE] + Self.bytes("40 01 78 01 79"))
    for _ in 1...2 { #expect(block([:]) == path + [0x83, 0xBF]) }
  }
}

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
