// swift-tools-version: 6.2
import PackageDescription

/// Compiler settings of every target of this package. Warnings are errors only on request (CI sets the variable): a
/// warning caused by a newer compiler or dependency must not break a user's build.
let house: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .strictMemorySafety(),
  ] + (Context.environment["FANFARE_WARNINGS_AS_ERRORS"] == "1" ? [.treatAllWarnings(as: .error)] : [])

let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let asyncHTTPClient: Target.Dependency = .product(name: "AsyncHTTPClient", package: "async-http-client")
let collections: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let coreMetrics: Target.Dependency = .product(name: "CoreMetrics", package: "swift-metrics")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let grdbSQLite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let heap: Target.Dependency = .product(name: "HeapModule", package: "swift-collections")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let jwtKit: Target.Dependency = .product(name: "JWTKit", package: "jwt-kit")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let metrics: Target.Dependency = .product(name: "Metrics", package: "swift-metrics")
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioExtras: Target.Dependency = .product(name: "NIOExtras", package: "swift-nio-extras")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let nioTLS: Target.Dependency = .product(name: "NIOTLS", package: "swift-nio")
let serviceLifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let swiftASN1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let unixSignals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let x509: Target.Dependency = .product(name: "X509", package: "swift-certificates")
let yams: Target.Dependency = .product(name: "Yams", package: "Yams")

let package = Package(
  name: "fanfare",
  products: [
    .executable(name: "fanfare", targets: ["fanfare"]),
    .executable(name: "fanfare-dev", targets: ["fanfare-dev"]),
    // Preloaded into nghttpd by `fanfare-dev bench`; see its source.
    .library(name: "PushSink", type: .dynamic, targets: ["CPushSink"]),
  ],
  // Minor releases are adopted by hand, because they may deprecate API that is used here.
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", .upToNextMinor(from: "1.8.2")),
    .package(url: "https://github.com/apple/swift-asn1", .upToNextMinor(from: "1.7.4")),
    .package(url: "https://github.com/apple/swift-certificates", .upToNextMinor(from: "1.21.1")),
    .package(url: "https://github.com/apple/swift-collections", .upToNextMinor(from: "1.6.0")),
    .package(url: "https://github.com/apple/swift-crypto", .upToNextMinor(from: "4.5.2")),
    .package(url: "https://github.com/apple/swift-http-types", .upToNextMinor(from: "1.8.0")),
    .package(url: "https://github.com/apple/swift-log", .upToNextMinor(from: "1.16.2")),
    .package(url: "https://github.com/apple/swift-metrics", .upToNextMinor(from: "2.13.0")),
    .package(url: "https://github.com/apple/swift-nio", .upToNextMinor(from: "2.101.2")),
    .package(url: "https://github.com/apple/swift-nio-extras", .upToNextMinor(from: "1.35.2")),
    .package(url: "https://github.com/apple/swift-nio-ssl", .upToNextMinor(from: "2.37.6")),
    .package(url: "https://github.com/groue/GRDB.swift", .upToNextMinor(from: "7.10.0")),
    .package(url: "https://github.com/jpsim/Yams", .upToNextMinor(from: "6.2.2")),
    .package(url: "https://github.com/swift-server/async-http-client", .upToNextMinor(from: "1.37.0")),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", .upToNextMinor(from: "2.13.0")),
    .package(url: "https://github.com/vapor/jwt-kit", .upToNextMinor(from: "5.7.1")),
  ],
  targets: [
    // The C libraries: only a module map and a `shim.h` each.
    .systemLibrary(name: "CRDKafka", pkgConfig: "rdkafka", providers: [.apt(["librdkafka-dev"])]),
    .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
    .systemLibrary(name: "CPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(name: "CCrypt", pkgConfig: "libcrypt", providers: [.apt(["libcrypt-dev"])]),

    // The memory allocator (Debian: libjemalloc-dev) and its settings.
    .target(name: "CJemalloc", linkerSettings: [.linkedLibrary("jemalloc")]),

    // Turns nghttpd into a push service, for `fanfare-dev bench`.
    .target(name: "CPushSink"),

    // Counts a process's instructions, for `fanfare-dev bench`.
    .target(name: "CPerfCounter"),

    // Safe Swift over the C libraries; they know nothing about push.
    .target(name: "RDKafka", dependencies: ["CRDKafka", logging], swiftSettings: house),
    .target(
      name: "HTTP2",
      dependencies: ["CNGHTTP2", "TwoLaneQueue", collections, logging, nioCore, nioPosix, nioSSL, nioTLS],
      swiftSettings: house),

    // The queue of the worker, the HTTP/2 pool and the WNS sender.
    .target(name: "TwoLaneQueue", dependencies: [collections], swiftSettings: house),

    // A server for HTTP/1.1 and HTTP/2; it knows nothing about push.
    .target(
      name: "HTTPServer",
      dependencies: [
        "HTTP2", collections, httpTypes, logging, metrics, nioCore, nioExtras, nioPosix, nioSSL, nioTLS,
        serviceLifecycle, swiftASN1, x509,
      ],
      swiftSettings: house),

    // The vocabulary, and the protocols between targets.
    .target(name: "FanfareCore", swiftSettings: house),

    // The declarations of settings, and how they are read. A target can declare its own.
    .target(name: "SettingsTable", dependencies: ["FanfareCore"], swiftSettings: house),

    // SQLite and PostgreSQL behind one kind of store.
    .target(
      name: "Store", dependencies: ["CPQ", "FanfareCore", collections, grdb, grdbSQLite, logging],
      swiftSettings: house),

    // The stages of a send.
    .target(
      name: "FrontEnd",
      dependencies: [
        "CCrypt", "FanfareCore", "HTTPServer", "Operations", "RDKafka", asyncHTTPClient, collections, coreMetrics,
        crypto, httpTypes, jwtKit, logging, metrics, nioCore, nioHTTP1, nioPosix, nioSSL, serviceLifecycle, swiftASN1,
        x509,
      ],
      // Embedded in the code, so that the program is a single file.
      resources: [
        .embedInCode("Description/docs.css"), .embedInCode("Description/docs.html"),
        .embedInCode("Description/docs.js"), .embedInCode("Description/openapi.json"),
      ],
      swiftSettings: house),
    // The protocol of Azure Notification Hubs, translated to the front end's operations.
    .target(
      name: "AzureHub",
      dependencies: [
        "FanfareCore", "FrontEnd", "HTTPServer", crypto, httpTypes, logging, nioCore, nioPosix, serviceLifecycle,
      ],
      swiftSettings: house),
    .target(
      name: "Registry",
      dependencies: ["FanfareCore", "Store", crypto, grdb, logging, metrics],
      swiftSettings: house),
    .target(
      name: "Worker",
      dependencies: ["FanfareCore", "RDKafka", "TwoLaneQueue", collections, logging, metrics, serviceLifecycle],
      swiftSettings: house),
    .target(
      name: "PushServices",
      dependencies: [
        "FanfareCore", "HTTP2", "SettingsTable", "TwoLaneQueue", asyncHTTPClient, collections, crypto, jwtKit, logging,
        metrics,
        nioCore, nioHTTP1, nioPosix, nioSSL,
      ],
      swiftSettings: house),
    .target(
      name: "Ledger",
      dependencies: [
        "FanfareCore", "RDKafka", "Store", coreMetrics, logging, metrics, serviceLifecycle,
      ],
      swiftSettings: house),

    .target(
      name: "Hooks",
      dependencies: [
        "FanfareCore", "RDKafka", asyncHTTPClient, crypto, logging, metrics, nioCore, nioHTTP1, nioSSL,
        serviceLifecycle,
      ],
      swiftSettings: house),

    // For operators of every role: the metrics exporter, health and readiness.
    .target(
      name: "Operations",
      dependencies: [
        "FanfareCore", "HTTPServer", asyncHTTPClient, coreMetrics, crypto, httpTypes, logging, nioCore, nioHTTP1,
        nioPosix, serviceLifecycle,
      ],
      swiftSettings: house),

    // The operations page and the state of the deployment behind it.
    .target(
      name: "Console",
      dependencies: ["FanfareCore", "FrontEnd", "Operations", "RDKafka", logging, serviceLifecycle],
      resources: ["index.html", "style.css"].map { .embedInCode("Page/\($0)") }
        + ["app", "api", "dom", "chart", "overview", "sends", "broadcasts", "devices", "letters"].map {
          .embedInCode("Page/\($0).js")
        },
      swiftSettings: house),
    // The product's settings and its roles as lists of services. The product and the workshop are built on it.
    .target(
      name: "Roles",
      dependencies: [
        "AzureHub", "Console", "FanfareCore", "FrontEnd", "HTTPServer", "Hooks", "Ledger", "Operations",
        "PushServices", "RDKafka", "Registry", "SettingsTable", "Store", "Worker", argumentParser, asyncHTTPClient,
        logging,
        metrics, nioCore, nioPosix, nioSSL, serviceLifecycle, unixSignals, yams,
      ],
      swiftSettings: house),
    // The product.
    .executableTarget(
      name: "fanfare",
      dependencies: [
        "AzureHub", "CJemalloc", "FanfareCore", "FrontEnd", "Ledger", "Operations", "PushServices", "RDKafka",
        "Registry", "Roles", "SettingsTable", "Store", argumentParser, asyncHTTPClient, crypto, logging, nioCore,
        nioHTTP1, nioSSL,
      ],
      swiftSettings: house),

    // The workshop: for development, tests and benchmarks. The product does not depend on it.
    // librdkafka's mock cluster as a broker.
    .target(name: "EmbeddedKafka", dependencies: ["CRDKafka", "RDKafka", logging], swiftSettings: house),
    // A deployment in one process and in virtual time: the worker's code, and models of what it depends on.
    .target(
      name: "Simulation",
      dependencies: [
        "FanfareCore", "FrontEnd", "HTTP2", "Ledger", "PushServices", "RDKafka", "Registry", "Store", "Worker",
        collections, heap, logging, serviceLifecycle,
      ],
      swiftSettings: house),
    // A private PostgreSQL server, started from the installed programs.
    .target(name: "PrivatePostgreSQL", swiftSettings: house),
    // Fakes of the push services over real TLS.
    .target(
      name: "PushSimulator",
      dependencies: [
        "FanfareCore", "HTTP2", "HTTPServer", crypto, cryptoExtras, httpTypes,
        logging, nioCore,
        nioSSL,
        serviceLifecycle, swiftASN1, x509,
      ],
      swiftSettings: house),
    // Demo, simulator, broker, benchmarks, fault tests.
    .executableTarget(
      name: "fanfare-dev",
      dependencies: [
        "CJemalloc", "CPerfCounter", "Console", "EmbeddedKafka", "FanfareCore", "FrontEnd", "HTTP2", "HTTPServer",
        "Ledger", "Operations",
        "PrivatePostgreSQL", "PushServices", "PushSimulator", "RDKafka", "Registry", "Roles",
        "SettingsTable", "Simulation", "Store", "Worker", argumentParser, asyncHTTPClient, crypto, httpTypes, logging,
        nioCore, nioHTTP1,
        nioPosix, nioSSL, serviceLifecycle, unixSignals,
      ],
      resources: ["index.html", "trace.css", "trace.js", "lanes.js", "waits.js", "page.js"].map {
        .embedInCode("TracePage/\($0)")
      },
      swiftSettings: house),

    // Tests mirror the targets. `Support` holds shared code, `EndToEnd` tests whole flows in real processes.
    .target(
      name: "Support",
      dependencies: [
        "EmbeddedKafka", "FanfareCore", "PrivatePostgreSQL", "RDKafka", "Registry", "Store", crypto, logging,
        nioCore, nioHTTP1, nioPosix, nioSSL, swiftASN1, x509,
      ],
      path: "Tests/Support",
      swiftSettings: house),
    .testTarget(
      name: "RDKafkaTests", dependencies: ["EmbeddedKafka", "RDKafka", "Support", nioSSL], swiftSettings: house),
    .testTarget(
      name: "StoreTests", dependencies: ["FanfareCore", "PrivatePostgreSQL", "Store", "Support"], swiftSettings: house),
    .testTarget(
      name: "HTTP2Tests",
      dependencies: ["HTTP2", "Support", logging, nioCore, nioPosix, nioSSL],
      swiftSettings: house),
    .testTarget(
      name: "HTTPServerTests",
      dependencies: ["FanfareCore", "HTTPServer", httpTypes, nioCore, nioEmbedded, nioHTTP1], swiftSettings: house),
    .testTarget(name: "TwoLaneQueueTests", dependencies: ["TwoLaneQueue"], swiftSettings: house),
    .testTarget(
      name: "FanfareCoreTests", dependencies: ["FanfareCore", "Hooks", "Operations", "Support", yams],
      exclude: ["Golden"], swiftSettings: house),
    .testTarget(
      name: "RegistryTests",
      dependencies: ["Registry", "FanfareCore", "PrivatePostgreSQL", "Store", "Support", grdb],
      exclude: ["Golden"], swiftSettings: house),
    .testTarget(
      name: "PushServicesTests",
      dependencies: [
        "PushServices", "PushSimulator", "FanfareCore", "HTTP2", "Support", asyncHTTPClient,
        crypto,
        cryptoExtras, jwtKit,
        logging, metrics, nioCore, nioHTTP1, nioPosix, nioSSL,
      ],
      swiftSettings: house),
    .testTarget(
      name: "PushSimulatorTests",
      dependencies: [
        "PushSimulator", "FanfareCore", "HTTP2", asyncHTTPClient, jwtKit, logging, nioCore, nioHTTP1, nioPosix,
        nioSSL,
      ],
      swiftSettings: house),
    .testTarget(
      name: "FrontEndTests",
      dependencies: [
        "EmbeddedKafka", "FrontEnd", "FanfareCore", "HTTPServer", "Operations", "RDKafka", "Registry", "Support",
        asyncHTTPClient, crypto, cryptoExtras, httpTypes, logging, nioCore, nioHTTP1, nioPosix, nioSSL, nioTLS,
        serviceLifecycle, swiftASN1, x509,
      ],
      exclude: ["HTTP2/peer.py", "Tokens/openid-provider.py"],
      swiftSettings: house),
    .testTarget(
      name: "AzureHubTests",
      dependencies: [
        "AzureHub", "FanfareCore", "FrontEnd", "Operations", "RDKafka", "Registry", "Support", asyncHTTPClient, crypto,
        nioCore, nioHTTP1,
      ],
      swiftSettings: house),
    .testTarget(
      name: "WorkerTests",
      dependencies: [
        "EmbeddedKafka", "Worker", "FanfareCore", "Operations", "RDKafka", "Registry", "Support", logging, metrics,
      ],
      exclude: ["Golden"], swiftSettings: house),
    .testTarget(
      name: "SimulationTests", dependencies: ["FanfareCore", "RDKafka", "Simulation", "Support", "Worker"],
      exclude: ["Mutations"], swiftSettings: house),
    .testTarget(
      name: "LedgerTests",
      dependencies: [
        "EmbeddedKafka", "Ledger", "FanfareCore", "RDKafka", "Store", "Support", grdb, logging, metrics,
        serviceLifecycle,
      ],
      exclude: ["Golden"], swiftSettings: house),
    .testTarget(
      name: "HooksTests",
      dependencies: [
        "EmbeddedKafka", "Hooks", "FanfareCore", "RDKafka", "Support", crypto, logging, nioCore, nioHTTP1, nioPosix,
        nioSSL, serviceLifecycle,
      ],
      swiftSettings: house),
    .testTarget(
      name: "OperationsTests",
      dependencies: [
        "Operations", "FanfareCore", "Support", asyncHTTPClient, logging, metrics, nioCore, nioHTTP1, nioPosix,
      ],
      swiftSettings: house),
    .testTarget(
      name: "ConsoleTests",
      dependencies: ["Console", "FanfareCore", "Operations", "Support"], swiftSettings: house),
    .testTarget(
      name: "FanfareTests",
      dependencies: [
        "fanfare", "AzureHub", "EmbeddedKafka", "FanfareCore", "FrontEnd", "HTTPServer", "Operations", "PushServices",
        "PushSimulator", "RDKafka", "Registry", "Roles", "SettingsTable", "Store", "Support", "Worker",
        argumentParser, asyncHTTPClient, logging, nioCore, nioHTTP1, nioPosix, serviceLifecycle, yams,
      ],
      swiftSettings: house),
    // A platform that only this target knows, in the whole product.
    .testTarget(
      name: "PlatformTests",
      dependencies: [
        "EmbeddedKafka", "FanfareCore", "FrontEnd", "Operations", "PushServices", "PushSimulator", "RDKafka", "Roles",
        "SettingsTable", "Support", asyncHTTPClient, logging, nioCore, nioHTTP1, nioSSL, serviceLifecycle,
      ],
      swiftSettings: house),
    .testTarget(
      name: "FanfareDevTests",
      dependencies: [
        "fanfare-dev", "EmbeddedKafka", "FanfareCore", "PushSimulator", "RDKafka", "Roles",
        "SettingsTable", "Store", "Support",
      ],
      swiftSettings: house),
    .testTarget(
      name: "EndToEnd",
      dependencies: [
        "fanfare", "fanfare-dev", "EmbeddedKafka", "FanfareCore", "FrontEnd", "PrivatePostgreSQL", "RDKafka",
        "Registry", "Roles", "Simulation", "Store", "Support", asyncHTTPClient, logging, nioCore, nioHTTP1, nioPosix,
      ],
      exclude: ["Azure/clients.py", "Console", "Corpus", "Schemathesis"], swiftSettings: house),
  ],
  swiftLanguageModes: [.v6]
)

// Only for the microbenchmarks (deploy/benchmarks sets the variable): other builds need not fetch and build their
// dependencies.
if Context.environment["FANFARE_BENCHMARKS"] != nil {
  package.dependencies.append(
    .package(url: "https://github.com/ordo-one/benchmark", .upToNextMinor(from: "1.38.1"), traits: []))
  package.targets += [
    .target(name: "CMeter", path: "Tests/Benchmarks/CMeter"),
    .executableTarget(
      name: "HotPath",
      dependencies: [
        "CMeter", "FanfareCore", "HTTP2", "PushServices", "RDKafka", "Worker", asyncHTTPClient,
        crypto, logging,
        nioPosix, .product(name: "Benchmark", package: "benchmark"),
      ],
      path: "Tests/Benchmarks/HotPath",
      swiftSettings: house),
  ]
}

// Only for fuzzing (deploy/fuzz sets the variable): libFuzzer brings the program's entry.
if Context.environment["FANFARE_FUZZ"] != nil {
  package.products.append(.executable(name: "Fuzz", targets: ["Fuzz"]))
  package.targets.append(
    .executableTarget(
      name: "Fuzz",
      dependencies: [
        "Console", "FanfareCore", "FrontEnd", "HTTP2", "HTTPServer", "Ledger", "Operations", "RDKafka", "Registry",
        "Worker",
        httpTypes, nioCore, nioEmbedded,
      ],
      path: "Tests/Fuzz",
      exclude: ["Corpus", "records.dict"],
      // Without it the compiler would look for statements at the top level of a file.
      swiftSettings: house + [.unsafeFlags(["-parse-as-library"])]))
}
