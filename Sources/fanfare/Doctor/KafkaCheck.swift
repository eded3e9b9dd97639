import FanfareCore
import Logging
import RDKafka
import Roles

/// The cluster: reachable, rights, the topics as the promises need them, the workers' group.
struct KafkaCheck {
  private static let area = "kafka"

  let settings: Settings
  let roles: Set<ConfigurationCheck.Role>
  let patience: Duration
  let logger: Logger

  private var words: ErrorWords { ErrorWords(settings) }

  /// The remedy for an error of Kafka: only `unauthorized` means that a right is missing.
  private static func remedy(for error: any Error, grant: String) -> String {
    (error as? RDKafkaError)?.code == .unauthorized
      ? grant : "ask again in some seconds: a new cluster, or one that has lost a broker, needs them"
  }

  func findings() async -> [CheckResult] {
    let reader: LogReader
    let names: Set<String>
    let start = ContinuousClock.now
    do {
      let client = try settings.kafka.client("doctor")
      reader = try LogReader(client: client, timeout: patience, logger: logger)
      names = Set(try await reader.topics())
    } catch {
      return [
        .wrong(
          Self.area, words.text(error),
          remedy: "check the address, that a broker listens there, and kafka.security")
      ]
    }
    let time = (ContinuousClock.now - start).milliseconds
    var findings = [CheckResult.ok(Self.area, "\(words.kafka) answered in \(time) ms and has \(names.count) topics")]
    let rights = await RightsCheck(reader: reader, topics: settings.kafka.topics, roles: roles).findings()
    findings += rights.findings
    let missing = settings.kafka.topics.all.filter { !names.contains($0) && !rights.hidden.contains($0) }
    findings += missing.map {
      .wrong("topics", "\($0) does not exist", remedy: "`fanfare topics create` creates it")
    }
    findings += await topics(except: Set(missing))
    if missing.isEmpty, roles.contains(.worker) {
      findings += await shares(reader)
      findings.append(await group(reader))
    }
    return findings
  }

  /// The topics that exist, against the promises.
  private func topics(except missing: Set<String>) async -> [CheckResult] {
    do {
      let kafka = settings.kafka
      let check = try TopicCheck(kafka: kafka, client: try kafka.client("doctor"), logger: logger)
      let report = try await check.report(timeout: patience)
      var findings = report.findings.filter { !missing.contains($0.topic) }.map { finding in
        let remedy =
          finding.property == "replicas"
          ? "add replicas with Kafka's own tools, or change kafka.replicationFactor"
          : "`fanfare topics create --repair` changes it"
        return CheckResult.wrong("topics", "\(finding)", remedy: remedy)
      }
      let remedy =
        report.topics.isEmpty
        ? "keep nothing that matters on it" : "grant DESCRIBE_CONFIGS on the topics to this client"
      findings += report.unreadable.map { .warning("topics", "cannot be read: \($0)", remedy: remedy) }
      return findings.isEmpty && missing.isEmpty
        ? [.ok("topics", "all \(report.topics.count) topics keep what is acknowledged")] : findings
    } catch {
      let remedy = Self.remedy(for: error, grant: "grant DESCRIBE and DESCRIBE_CONFIGS to this client")
      return [.warning("topics", words.text(error), remedy: remedy)]
    }
  }

  /// The numbers of partitions, by which workers share broadcasts. Other checks report a cluster that does not answer.
  private func shares(_ reader: LogReader) async -> [CheckResult] {
    let topics = settings.kafka.topics
    var counts: [String: Int] = [:]
    do {
      for partition in try await reader.partitions(of: [topics.sends, topics.segments]) {
        counts[partition.topic, default: 0] += 1
      }
    } catch {
      return []
    }
    let (sends, segments) = (counts[topics.sends] ?? 0, counts[topics.segments] ?? 0)
    guard sends != segments else { return [] }
    return [
      .warning(
        "topics",
        "\(topics.sends) has \(sends) partitions and \(topics.segments) \(segments): broadcasts are shared unevenly",
        remedy: "add partitions to the smaller one; see Adding partitions in Operations")
    ]
  }

  /// The lag of the workers' group on the sends topic.
  private func group(_ reader: LogReader) async -> CheckResult {
    let (topic, group) = (settings.kafka.topics.sends, settings.workerGroup)
    do {
      let partitions = try await reader.partitions(of: [topic])
      let committed = try await reader.committed(by: group, in: partitions)
      let spans = try await reader.spans(of: [topic])
      let positions = Dictionary(committed.map { ($0.partition, $0.offset) }) { $1 }
      let lag = spans.reduce(Int64(0)) { sum, span in
        sum + max(0, span.end - max(span.start, positions[span.partition] ?? span.start))
      }
      guard !committed.isEmpty || lag == 0 else {
        return .warning(
          "group", "\(lag) sends wait in \(topic), and the group \(group) has never committed an offset",
          remedy: "start `fanfare worker`, and look whether it is ready (/readyz)")
      }
      return .ok("group", "\(lag) records of \(topic) wait for the group \(group)")
    } catch {
      let remedy = Self.remedy(for: error, grant: "grant DESCRIBE and READ on the group \(group) to this client")
      return .warning("group", words.text(error), remedy: remedy)
    }
  }
}
