import Metrics
import Synchronization

/// What the gauges say that have not been destroyed.
final class GaugeValues: MetricsFactory {
  private final class Recorder: RecorderHandler {
    let value = Mutex<Double?>(nil)

    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { self.value.withLock { $0 = value } }
  }

  private let recorders = Mutex<[(label: String, recorder: Recorder)]>([])

  /// What was recorded last by each gauge of that name.
  func values(of label: String) -> [Double] {
    recorders.withLock { recorders in
      recorders.filter { $0.label == label }.compactMap { $0.recorder.value.withLock { $0 } }
    }
  }

  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    let recorder = Recorder()
    recorders.withLock { $0.append((label, recorder)) }
    return recorder
  }

  func destroyRecorder(_ handler: any RecorderHandler) {
    recorders.withLock { recorders in recorders.removeAll { $0.recorder === handler } }
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { NOOPMetricsHandler.instance }
  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { NOOPMetricsHandler.instance }
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
}
