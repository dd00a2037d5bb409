import APNSProtocol
package import Access
package import Answers
package import Bytes
package import EngineRoom
package import WakeDispatch

/// One request of an operation, whose caller was admitted. Its views are valid during the call alone.
package struct OperationCall {
    package let caller: Caller
    package let afterFailedStore: AfterFailedStore
    /// What waits for the answer.
    package let reply: StreamAddress
    /// What stands at the parameter's place in the path.
    package let parameter: ByteView
    package let query: ByteView
    package let body: ByteView
    package let services: GatewayServices

    package init(
        _ operation: Operation,
        by caller: Caller,
        reply: StreamAddress,
        parameter: ByteView,
        query: ByteView,
        body: ByteView,
        services: GatewayServices
    ) {
        self.caller = caller
        self.afterFailedStore = operation.afterFailedStore
        self.reply = reply
        self.parameter = parameter
        self.query = query
        self.body = body
        self.services = services
    }

    /// The device whose token is the parameter.
    package func device() throws(APIError) -> Named<DeviceToken> {
        guard let token = DeviceToken(hex: self.parameter) else { throw .badDeviceToken }
        return Named(token)
    }

    /// The topic that is the parameter.
    package func topic() throws(APIError) -> [UInt8] {
        guard PushHead.isTopic(self.parameter) else { throw .badTopic }
        return self.parameter.array
    }

    /// The wake whose id is the parameter.
    package func wake() throws(APIError) -> Named<WakeID> {
        guard let wake = WakeID(self.parameter) else { throw .unknownWake }
        return Named(wake)
    }
}
