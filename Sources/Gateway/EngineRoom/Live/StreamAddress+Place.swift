import WakeDispatch

extension StreamAddress {
    /// Four numbers that tell one stream from the others, for people to read; they are no proof of anything. Those of
    /// webhooks stand behind the last loop's.
    func place(loopCount: Int) -> String {
        switch self {
        case .stream(let stream), .faulted(let stream): stream.place
        case .webhook(let number): "\(loopCount)-\(number)-0-0"
        case .webhookReport(let number): "\(loopCount)-\(number)-0-1"
        }
    }
}

extension LoopStream {
    /// Four numbers that tell one stream from the others.
    var place: String { "\(self.loop)-\(self.connectionIndex)-\(self.connectionGeneration)-\(self.number)" }
}
