import Engine
import Glibc
import Platform
import Policy
import Wire

/// Measures the resident bytes per device, first for many idle devices, then with a pending push for each.
@main
struct Measurement {
    /// The size of each push's payload in bytes, typical of a background push with a few keys.
    static let payloadBytes = 228

    static func main() {
        let arguments = CommandLine.arguments
        let count = arguments.count > 1 ? Int(arguments[1]) : 1_000_000
        guard let count, count > 0, arguments.count <= 2 else {
            Self.write("usage: wakegate-memory [DEVICES]\n", to: STDERR_FILENO)
            exit(64)
        }
        var configuration = EngineConfiguration()
        configuration.devicesMax = count
        var number: UInt64 = 0
        let engine = DeviceEngine(
            configuration: configuration,
            now: Instant(milliseconds: 1_700_000_000_000),
            historyKey: HashKey((1, 2))
        ) {
            number += 1
            return (number &* SplitMix64.step, number)
        }
        let start = Self.residentBytes()
        for device in 0..<count { Self.register(device, engine) }
        let idle = Self.residentBytes()
        for device in 0..<count { Self.push(device, engine) }
        let pending = Self.residentBytes()
        precondition(engine.totals.pending == Int64(count), "a push waits on each device")
        Self.report(count, idle: idle - start, pending: pending - start)
    }

    private static func report(_ count: Int, idle: Int, pending: Int) {
        let figures = JSONWriter.object { writer in
            writer.member("devices", count)
            writer.member("payloadBytes", Self.payloadBytes)
            writer.member("bytesPerIdleDevice", idle / count)
            writer.member("bytesPerPendingDevice", pending / count)
        }
        Self.write(String(decoding: figures, as: UTF8.self) + "\n", to: STDOUT_FILENO)
    }

    private static func token(_ device: Int) -> DeviceToken {
        var bytes: [UInt8] = []
        for word in 0..<UInt64(4) {
            let value = (UInt64(device) &+ 1) &* (SplitMix64.step &+ word &* 2)
            for byte in 0..<UInt64(8) { bytes.append(UInt8(truncatingIfNeeded: value >> (byte * 8))) }
        }
        guard let token = bytes.withByteView({ DeviceToken(bytes: $0) }) else {
            preconditionFailure("32 bytes are a token")
        }
        return token
    }

    private static func register(_ device: Int, _ engine: DeviceEngine) {
        _ = engine.register(Self.token(device), topic: ByteView("com.example.app"))
        if device & 255 == 255 { Self.takeChanges(engine) }
    }

    private static func push(_ device: Int, _ engine: DeviceEngine) {
        guard let index = engine.find(Self.token(device)) else { preconditionFailure("it was registered") }
        Array(repeating: UInt8(ascii: " "), count: Self.payloadBytes).withByteView { payload in
            var push = Push()
            push.apnsID = APNsID(random: (UInt64(device), 1))
            push.priority = .considerate
            push.payload = payload
            push.wakes = true
            _ = engine.catchUp(index)
            _ = try? engine.accept(push, .absent, device: index, workerIsFree: false)
        }
        // A driver also empties the list of newcomers in each step. The list would otherwise grow and distort the
        // measurement.
        while engine.ready.popNewlyReady() != nil {}
        if device & 255 == 255 { Self.takeChanges(engine) }
    }

    /// Discards the changes and events that a driver takes after each step, so that they are not measured.
    private static func takeChanges(_ engine: DeviceEngine) {
        _ = engine.takeStep()
        var events: [HistoryEvent] = []
        engine.takeEvents(into: &events)
    }

    /// Returns the resident memory (VmRSS) of this process in bytes.
    private static func residentBytes() -> Int {
        guard let file = try? OpenFile("/proc/self/status", O_RDONLY), let bytes = try? file.contents(bytesMax: 8192)
        else { preconditionFailure("/proc is not mounted") }
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        where line.hasPrefix("VmRSS:") {
            guard let kibibytes = Int(line.split(whereSeparator: { $0 == " " || $0 == "\t" })[1]) else { break }
            return kibibytes * 1024
        }
        preconditionFailure("/proc/self/status names no VmRSS")
    }

    private static func write(_ text: String, to file: Int32) {
        text.withByteView { _ = try? Descriptor.writeWhole(file, $0) }
    }
}
