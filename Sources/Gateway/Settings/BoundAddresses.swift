/// Where a running gateway accepts, with the ports it really got.
package struct BoundAddresses: Sendable {
    package var edge: ListenSetting
    package var admin: ListenSetting
    package var plain: ListenSetting

    package init(edge: ListenSetting, admin: ListenSetting, plain: ListenSetting) {
        self.edge = edge
        self.admin = admin
        self.plain = plain
    }
}
