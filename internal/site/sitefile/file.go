package sitefile

import (
	"orrery/internal/site"
	"orrery/internal/site/device"
	"orrery/internal/site/service"
	"orrery/internal/site/traffic"
	"orrery/internal/strict"
)

// The types in this file are format 1 of site.toml: its keys and their values. Where the model has
// the same form as the file, the types use those of the model. A nil pointer means that the file
// does not contain the key, and a default applies.

type siteFile struct {
	Format    *int                         `toml:"format"`
	Extends   string                       `toml:"extends"` // directory of the site file that this one extends
	Remove    []string                     `toml:"remove"`  // keys of that site file that do not count
	Site      site.Site                    `toml:"site"`
	Hosts     strict.Tables[site.Host]     `toml:"host"`
	Networks  strict.Tables[site.Network]  `toml:"network"`
	VethPairs strict.Tables[vethPairTable] `toml:"vethpair"`
	Images    strict.Tables[site.Image]    `toml:"image"`
	Mirror    mirrorTable                  `toml:"mirror"`
	// Nodes are nodeTables, which are decoded on top of the defaults.
	Nodes    strict.Tables[*strict.Node]       `toml:"node"`
	Groups   strict.Tables[groupTable]         `toml:"group"`
	Services strict.Tables[serviceDeclaration] `toml:"service"`
	Volumes  strict.Tables[site.Volume]        `toml:"volume"`
	Secrets  strict.Tables[site.Secret]        `toml:"secret"`
	Defaults defaultsTable                     `toml:"defaults"`
	Twin     site.TwinRules                    `toml:"twin"`
	Releases strict.Tables[releaseTable]       `toml:"release"`
	Tests    strict.Tables[site.Test]          `toml:"test"`
	Hooks    strict.Tables[site.Hook]          `toml:"hook"`
	Settings site.Settings                     `toml:"role"`
	Alert    site.Hook                         `toml:"alert"`
	Backup   site.Backup                       `toml:"backup"`
	Snapshot site.Schedule                     `toml:"snapshot"`
	Watch    site.Watch                        `toml:"watch"`
}

type vethPairTable struct {
	site.VethPair
	Ends []string `toml:"ends"`
}

type mirrorTable struct {
	site.Mirror
	CA  *string `toml:"ca"`
	Key *string `toml:"key"`
}

// nodeSettings are the settings that a node or [defaults] may contain.
type nodeSettings struct {
	Image        string          `toml:"image"`
	Host         string          `toml:"host"`
	Engine       string          `toml:"engine"`
	Privileged   bool            `toml:"privileged"`
	Syscalls     []string        `toml:"syscalls"`
	Devices      []device.Device `toml:"devices"`
	Autostart    bool            `toml:"autostart"`
	Requirements string          `toml:"requirements"`
	// AuthorizedKeys are public keys, or files of them.
	AuthorizedKeys []string      `toml:"authorized_keys"`
	SSHUser        string        `toml:"ssh_user"`
	VM             site.VM       `toml:"vm"`
	Xen            site.XenGuest `toml:"xen"`
	site.Limits
}

// builtinDefaults holds the defaults for settings in neither the node nor [defaults].
var builtinDefaults = nodeSettings{Engine: site.LXC, Autostart: true, Limits: site.Limits{Pids: site.DefaultPids}}

type nodeTable struct {
	At    *strict.Node `toml:"-"`
	ID    int          `toml:"id"`
	Roles []string     `toml:"roles"`
	// Net are addresses, or interfaceTables.
	Net         strict.Tables[*strict.Node] `toml:"net"`
	Interface   strict.Tables[string]       `toml:"interface"`
	IPv6        strict.Tables[[]string]     `toml:"ipv6"`
	SimulatedBy string                      `toml:"simulated_by"`
	Vars        map[string]any              `toml:"vars"`
	Settings    site.Settings               `toml:"role"`
	Publish     []publish                   `toml:"publish"`
	Per         string                      `toml:"per"`
	Hosts       []string                    `toml:"hosts"`
	nodeSettings
}

// An interfaceTable is an interface of a node with limits of its traffic.
type interfaceTable struct {
	Address string `toml:"address" default:"auto"`
	traffic.Limits
}

type defaultsTable struct {
	At       *strict.Node `toml:"-"`
	Networks *[]string    `toml:"networks"`
	nodeSettings
}

type groupTable struct {
	Nodes  []string `toml:"nodes"`
	Groups []string `toml:"groups"`
	Batch  batch    `toml:"batch"`
	Spread string   `toml:"spread"`
	// AuthorizedKeys are added to those that the group's nodes have.
	AuthorizedKeys []string       `toml:"authorized_keys"`
	Vars           map[string]any `toml:"vars"`
	Settings       site.Settings  `toml:"role"`
}

type serviceDeclaration struct {
	service.Service
	Nodes  []string `toml:"nodes"`  // names, globs, braces and selectors
	Active string   `toml:"active"` // one of service.Kinds, or "" for a service whose address moves
}

type releaseTable struct {
	site.Release
	Requirements *string `toml:"requirements"`
}
