import FanfareCore
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServer

/// The parser of HTTP/1.1 by itself: what it reads and refuses, in whatever pieces it arrives, and beside NIO's.
struct HTTP1ParserTests {
  /// A request as a server sees it.
  private struct Request: Equatable {
    var method: String
    var target: String
    var isOld: Bool
    var fields: [[String]]
    var body: [UInt8] = []
    var isWhole = false
  }

  private struct Reading: Equatable {
    var requests: [Request] = []
    var fault: RequestFault?
    var requestID: String?
    /// The bytes that wait for more.
    var rest = 0
  }

  private static let limits = HTTP1Parser.Limits(fieldSize: 512, size: 1024, count: 16)

  private static func read(_ pieces: [ArraySlice<UInt8>]) -> Reading {
    var (reading, parser, buffer, isLast) = (Reading(), HTTP1Parser(limits: limits), ByteBuffer(), false)
    do throws(RuleViolation) {
      for piece in pieces {
        buffer.writeBytes(piece)
        while let part = try parser.next(&buffer) {
          switch part {
          case .head(let head):
            isLast = head.isLast || head.isOffer
            reading.requests.append(
              Request(
                method: head.method.rawValue, target: head.target, isOld: head.isOld,
                fields: head.fields.all.map { [$0.name, $0.value] }))
          case .body(let bytes): reading.requests[reading.requests.count - 1].body += bytes.readableBytesView
          case .end:
            reading.requests[reading.requests.count - 1].isWhole = true
            // The connection reads nothing more.
            if isLast { return reading }
          }
        }
      }
      reading.rest = buffer.readableBytes
    } catch {
      (reading.fault, reading.requestID) = (error.fault, error.requestID)
    }
    return reading
  }

  private static func read(_ text: String) -> Reading { read([Array(text.utf8)[...]]) }

  private static let valid = [
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "\r\n\r\nGET  /a?b#c HTTP/1.1\r\nhost:x \r\nX-Empty:\r\nX-Request-Id:\t7 \t\r\nX-A: a b\té\r\n\r\n",
    "POST /api/sends HTTP/1.1\r\nHost: x:1\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y;z\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
    "PUT / HTTP/1.0\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n1HEAD * HTTP/1.1\r\nHost:\r\n\r\n",
    "POST http://x/y HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\nConnection: close, Upgrade\r\n\r\n",
    "M-SEARCH /%zz HTTP/1.1\r\nHost: x\r\nCookie: a=b\r\nCookie: c=d\r\nOrigin: null\r\nX-Forwarded-For: ::1\r\n\r\n",
  ]

  private static let refused: [(text: String, fault: RequestFault)] = [
    ("get / HTTP/1.1\r\n", .unknownMethod), ("GET\r\n", .unknownMethod), ("\u{16}\u{3}", .unknownMethod),
    ("UNSUBSCRIBERS", .unknownMethod), ("\nGET / HTTP/1.1", .unknownMethod),
    ("PRI * HTTP/2.0\r\n", .malformed), ("GET x HTTP/1.1\r\n", .malformed), ("GET http:///x HTTP/1.1\r\n", .malformed),
    ("GET /\r\n", .malformed), ("GET / HTTP\r\n\r\n", .malformed), ("GET / x\r\n\r\n", .malformed),
    ("GET /\u{1} HTTP/1.1", .malformed), ("GET /é HTTP/1.1", .malformed), ("GET / x HTTP/1.1", .malformed),
    ("GET / HTTP/1.2\r\n", .malformed), ("GET / HTTP/1.1\n\r\n", .malformed), ("GET / http/1.1\r\n", .malformed),
    ("GET / HTTP/1.1\r\nA : 1\r\n", .malformed), ("GET / HTTP/1.1\r\n: 1\r\n", .malformed),
    ("GET / HTTP/1.1\r\nA: 1\r\n b\r\n", .malformed), ("GET / HTTP/1.1\r\nA\r\n", .malformed),
    ("GET / HTTP/1.1\r\nA: 1\n", .malformed), ("GET / HTTP/1.1\r\nA: 1\rB: 2\r\n", .malformed),
    ("GET / HTTP/1.1\r\nA: \u{0}", .malformed), ("GET / HTTP/1.1\r\nA: \u{7F}", .malformed),
    ("GET / HTTP/1.1\r\nÄ: 1\r\n", .malformed), ("GET / HTTP/1.1\r\n\rA", .malformed),
  ]

  /// What follows `POST / HTTP/1.1`, `Host` and more fields.
  private static let refusedBodies: [(text: String, fault: RequestFault)] = [
    ("Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", .malformed),
    ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", .malformed),
    ("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", .malformed),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", .malformed),
    ("Content-Length: 2, 2\r\n\r\n", .malformed), ("Content-Length: +2\r\n\r\n", .malformed),
    ("Content-Length: 0x2\r\n\r\n", .malformed), ("Content-Length: \r\n\r\n", .malformed),
    ("Content-Length: 18446744073709551616\r\n\r\n", .malformed),
    ("Transfer-Encoding: chunked\r\n\r\ng\r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n\r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n-1\r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n1\n1", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nT : 1\r\n\r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n1;a=\"b\"\r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n1 \r\n", .malformedBody),
    ("Transfer-Encoding: chunked\r\n\r\n1;\(String(repeating: "x", count: 256))\r\n", .malformedBody),
  ]

  @Test func whatIsReadDoesNotDependOnThePieces() {
    let texts =
      Self.valid + Self.refused.map(\.text)
      + Self.refusedBodies.map { "POST / HTTP/1.1\r\nHost: x\r\n\($0.text)" }
    for text in texts {
      let bytes = Array(text.utf8)
      let whole = Self.read([bytes[...]])
      #expect(Self.read(bytes.indices.map { bytes[$0...$0] }) == whole, "\(text)")
      for cut in bytes.indices where Self.read([bytes[..<cut], bytes[cut...]]) != whole {
        Issue.record("cut at \(cut): \(text)")
      }
    }
  }

  @Test func validRequestsAreRead() throws {
    for text in Self.valid {
      let reading = Self.read(text)
      #expect(reading.fault == nil && reading.rest == 0, "\(text)")
      #expect(reading.requests.count == (text.contains("HEAD") ? 2 : 1) && reading.requests.allSatisfy(\.isWhole))
    }
    let second = try #require(Self.read(Self.valid[1]).requests.first)
    #expect(second.target == "/a?b#c")
    #expect(second.fields == [["host", "x"], ["X-Empty", ""], ["X-Request-Id", "7"], ["X-A", "a b\té"]])
    #expect(Self.read(Self.valid[3]).requests.first?.body == Array("abc0123456789".utf8))
    #expect(Self.read(Self.valid[5]).requests.first?.target == "/y")
  }

  @Test func whatIsAmbiguousIsRefused() {
    for (text, fault) in Self.refused { #expect(Self.read(text).fault == fault, "\(text)") }
    for (text, fault) in Self.refusedBodies {
      #expect(Self.read("POST / HTTP/1.1\r\nHost: x\r\n\(text)").fault == fault, "\(text)")
    }
    // The id of a request is known wherever the field stands.
    let reading = Self.read("GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nX-Request-Id: 7\r\n\r\nGET")
    #expect(reading.fault?.kind == .notImplemented && reading.requestID == "7")
  }

  @Test func linesHeadsAndTrailersAreBounded() {
    func text(_ count: Int) -> String { String(repeating: "x", count: count) }
    let field = "A: \(text(500))\r\n"
    for request in [
      "GET /\(text(600))", "GET \(String(repeating: " ", count: 600))", "GET / HTTP/1.1\r\nA: \(text(600))",
      "GET / HTTP/1.1\r\n\(text(600))", "GET / HTTP/1.1\r\n\(field)\(field)\(field)",
      "GET / HTTP/1.1\r\n\(String(repeating: "A:\r\n", count: 17))",
    ] { #expect(Self.read(request).fault == .headersTooLarge, "\(request.prefix(40))") }
    let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    for trailers in [field + field + field, String(repeating: "A:\r\n", count: 17), text(1100)] {
      #expect(Self.read(chunked + trailers).fault == .malformedBody)
    }
  }

  /// Nothing is accepted that NIO's decoder refuses, and what both accept is the same.
  @Test func changedRequestsAreReadAsNIOReadsThem() throws {
    var generator = SplitMix64(seed: 42)
    let seeds = (Self.valid + Self.refusedBodies.map { "POST / HTTP/1.1\r\nHost: x\r\n\($0.text)" }).map {
      Array($0.utf8)
    }
    let alphabet = Array("\r\n\r\n :;,\t0129aAfFxG/*?#\u{0}\u{7F}é".utf8)
    var differences = 0
    for _ in 0..<20_000 where differences < 20 {
      guard var bytes = seeds.randomElement(using: &generator) else { return }
      for _ in 0..<Int.random(in: 1...4, using: &generator) where bytes.count > 1 {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        let length = Int.random(in: 1...min(8, bytes.count - index), using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[index] = alphabet.randomElement(using: &generator) ?? 0
        case 1: bytes.insert(alphabet.randomElement(using: &generator) ?? 0, at: index)
        case 2: bytes.removeSubrange(index..<index + length)
        default: bytes.insert(contentsOf: bytes[index..<index + length], at: index)
        }
      }
      let own = Self.read([bytes[...]]).requests.filter(\.isWhole)
      let other = try Self.readByNIO(bytes)
      if own.count > other.count || zip(own, other).contains(where: { $0 != $1 }) {
        differences += 1
        Issue.record("\(String(decoding: bytes, as: UTF8.self).debugDescription): \(own) \(other)")
      }
    }
  }

  private static func trimmed(_ value: String) -> String {
    let bytes = Array(value.utf8).trimmingPrefix(while: \.isBlank)
    return String(decoding: bytes.reversed().trimmingPrefix(while: \.isBlank).reversed(), as: UTF8.self)
  }

  /// The whole requests that NIO's decoder finds.
  private static func readByNIO(_ bytes: [UInt8]) throws -> [Request] {
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
    // What it finds before an error counts.
    do { try channel.writeInbound(ByteBuffer(bytes: bytes)) } catch is HTTPParserError {}
    var requests: [Request] = []
    while let part = try channel.readInbound(as: HTTPServerRequestPart.self) {
      switch part {
      case .head(let head):
        requests.append(
          Request(
            // NIO's own name of a method, without the hyphen.
            method: head.method == .MSEARCH ? "M-SEARCH" : head.method.rawValue,
            target: HTTP1Head.originForm(head.uri, .get) ?? head.uri,
            isOld: head.version == .http1_0,
            fields: head.headers.map { [$0.name, trimmed($0.value)] }))
      case .body(let bytes): requests[requests.count - 1].body += bytes.readableBytesView
      case .end: requests[requests.count - 1].isWhole = true
      }
    }
    // The end of the input is an error within a request.
    do { _ = try channel.finish(acceptAlreadyClosed: true) } catch is HTTPParserError {}
    return requests.filter(\.isWhole)
  }
}
