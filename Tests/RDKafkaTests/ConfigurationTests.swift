import Support
import Testing

@testable import RDKafka

struct ConfigurationTests {
  private func rejection(_ properties: [String: String]) -> RDKafkaError? {
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test", properties: properties)
    return #expect(throws: RDKafkaError.self) {
      _ = try Producer(configuration: ProducerConfiguration(client: client), logger: TestKafka.quietLogger)
    }
  }

  @Test func unknownPropertyIsNamed() throws {
    let error = try #require(rejection(["no.such.property": "s3cret"]))
    #expect(error.code == .configuration)
    #expect(error.message.contains("'no.such.property'"))
    #expect(!"\(error)".contains("s3cret"))
  }

  @Test func invalidValueIsNotInTheError() throws {
    let error = try #require(rejection(["security.protocol": "s3cret"]))
    #expect(error.code == .configuration)
    #expect(error.message.contains("'security.protocol'"))
    #expect(!"\(error)".contains("s3cret"))
  }

  @Test(arguments: ["acks", "enable.idempotence", "partitioner", "bootstrap.servers", "delivery.timeout.ms"])
  func producerGuaranteesCannotBeDisabled(key: String) throws {
    let error = try #require(rejection([key: "0"]))
    #expect(error.message.contains("'\(key)'"))
  }

  @Test(arguments: ["partition.assignment.strategy", "enable.auto.offset.store", "group.id"])
  func consumerGuaranteesCannotBeDisabled(key: String) throws {
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test", properties: [key: "x"])
    let error = #expect(throws: RDKafkaError.self) {
      _ = try Consumer(
        configuration: ConsumerConfiguration(client: client, groupID: "g", topics: ["t"]), logger: TestKafka.quietLogger
      )
    }
    #expect(error?.message.contains("'\(key)'") == true)
  }

  @Test func producerMessageSizeDoesNotAffectConsumers() {
    let client = KafkaClientConfiguration(
      bootstrapServers: "127.0.0.1:1", clientID: "test", properties: ["message.max.bytes": "2000000"])
    #expect(throws: Never.self) {
      _ = try Consumer(
        configuration: ConsumerConfiguration(client: client, groupID: "g", topics: ["t"]), logger: TestKafka.quietLogger
      )
    }
  }

  @Test func noDescriptionShowsAPropertysValue() {
    let client = KafkaClientConfiguration(
      bootstrapServers: "host:1", clientID: "c", properties: ["sasl.password": "s3cret"])
    let producer = ProducerConfiguration(client: client)
    let consumer = ConsumerConfiguration(client: client, groupID: "g", topics: [])
    var dumped = ""
    dump(producer, to: &dumped)
    dump(consumer, to: &dumped)
    for text in ["\(client)", String(reflecting: client), "\(producer)", String(reflecting: consumer), dumped] {
      #expect(!text.contains("s3cret"))
    }
    #expect("\(client)".contains("sasl.password"))
  }
}
