import HTTPClient
import Platform
import Wire

/// Follows one push to its end in the gateway's delivery log, and shows each step once.
struct PushFollower {
    /// How long it waits between two looks, in milliseconds: at first, and at most.
    private static let pauses = (first: 50, last: 1000)
    /// How long one answer may take, in milliseconds: when its time is over all but, and at most.
    private static let answerTimes: (first: Int64, last: Int64) = (1000, 30_000)

    let location: GatewayLocation
    /// The device, as the log names it in a query.
    let device: String
    let timeoutSeconds: Int

    /// Waits until the push has ended; a coalesced one as the one it went into does.
    ///
    /// - Returns: whether it was completed.
    /// - Throws: when it has not ended in time, and when the log cannot be read.
    func follow(_ apnsID: String) throws(CommandFailure) -> Bool {
        let client = try self.location.client()
        let deadline = SystemClock.monotonic + Int64(self.timeoutSeconds) * 1000
        var way = PushWayText(apnsID)
        var pause = Self.pauses.first
        while true {
            let path = "/v1/pushes/\(URLPath.component(way.apnsID))?device=\(URLPath.component(self.device))"
            var request = self.location.request("GET", path)
            let time = max(Self.answerTimes.first, deadline - SystemClock.monotonic)
            request.timeoutMilliseconds = Int(min(Self.answerTimes.last, time))
            let response = try self.location.answer(request, with: client)
            guard response.status != 404 || !response.text.contains("\"BadPath\"") else {
                throw CommandFailure(
                    .failed,
                    "\(self.location.url) has no delivery log; name the admin listener: --admin"
                )
            }
            let answer = try GatewayAnswer.object(response)
            for line in way.newLines(answer) {
                Console.out(line + "\n")
                pause = Self.pauses.first
            }
            switch answer["state"]?.text {
            case "completed": return true
            case "discarded", "noWake": return false
            case "coalesced":
                guard let heir = answer["into"]?.text else { return false }
                way = PushWayText(heir)
            default: break
            }
            let left = deadline - SystemClock.monotonic
            guard left > 0 else {
                let state = answer["state"]?.text ?? "unknown"
                throw CommandFailure(
                    .failed,
                    "push \(way.apnsID) is \(state) after \(self.timeoutSeconds) s; wait longer with --timeout "
                        + "SECONDS, and see why with `wakegate stats --device \(ShellText.quoted(self.device))`"
                )
            }
            // Without a request under way this only waits.
            _ = client.poll(timeoutMilliseconds: Int(min(Int64(pause), left)))
            pause = min(pause * 2, Self.pauses.last)
        }
    }
}
