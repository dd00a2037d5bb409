import Answers
import Bytes
import FaultInjection
import Foundation
import HTTPTransport
import Settings

/// The routes of `/v1/faults`.
extension LoopHandler {
    /// - Throws: `APIError` that names every fault of the rules, or says that no rules are taken here.
    func perform(_ route: FaultRoute, _ request: Request) throws(APIError) {
        guard let desk = self.context.faults else { throw .noFaultsHere }
        var writer = JSONWriter()
        var status = 200
        switch route {
        case .replace:
            let read = try Self.rules(request.body) { text throws(ConfigurationError) in
                try FaultRuleReader.rules(text, name: "the body")
            }
            desk.replace(with: read.rules)
            desk.write(to: &writer, warnings: read.warnings)
        case .add:
            let read = try Self.rules(request.body) { text throws(ConfigurationError) in
                try FaultRuleReader.rule(text, name: "the body")
            }
            status = 201
            writer.beginObject()
            for rule in read.rules {
                writer.key("id")
                writer.string(try desk.append(rule))
            }
            FaultDesk.write(read.warnings, to: &writer)
            writer.endObject()
        case .clear: desk.replace(with: [])
        case .remove(let id): try desk.remove(id)
        case .reset: desk.resetCounters()
        case .list: desk.write(to: &writer)
        }
        if writer.buffer.isEmpty {
            self.response.begin(status: 204)
            _ = self.loop.respond(request.stream, self.response, body: nil)
        } else {
            self.answer(request.stream, status: status, writer.buffer.view)
        }
    }

    private static func rules(
        _ body: ByteView,
        _ read: (Data) throws(ConfigurationError) -> FaultRuleReader.Rules
    ) throws(APIError) -> FaultRuleReader.Rules {
        do throws(ConfigurationError) {
            return try read(Data(body.array))
        } catch {
            throw .badFaults(error)
        }
    }
}
