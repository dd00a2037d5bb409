package import WakeDispatch

extension StreamAddress {
    /// The number that `DispatchRig.address` made it of.
    package var number: Int {
        switch self {
        case .stream(let stream), .faulted(let stream): Int(stream.connectionIndex)
        case .webhook(let number), .webhookReport(let number): Int(number)
        }
    }
}
