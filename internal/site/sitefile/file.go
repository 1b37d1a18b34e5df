package sitefile

import (
	"time"

	"orrery/internal/strict"
)

// The types of this file are format 1 of site.toml: what may be written, under which key. They are apart from the
// model so that the format can change without the model, and the model without the format. Pointers are nil where
// nothing was written and something else then holds.

type siteFile struct {
	Format    *int                         `toml:"format"`
	Site      siteTable                    `toml:"site"`
	Hosts     strict.Tables[hostTable]     `toml:"host"`
	Networks  strict.Tables[networkTable]  `toml:"network"`
	VethPairs strict.Tables[vethPairTable] `toml:"vethpair"`
	Images    strict.Tables[imageTable]    `toml:"image"`
	Mirror    mirrorTable                  `toml:"mirror"`
	Nodes     strict.Tables[nodeTable]     `toml:"node"`
	Groups    strict.Tables[groupTable]    `toml:"group"`
	Volumes   strict.Tables[volumeTable]   `toml:"volume"`
	Secrets   strict.Tables[secretTable]   `toml:"secret"`
	Defaults  defaultsTable                `toml:"defaults"`
	Twin      twinTable                    `toml:"twin"`
	Releases  strict.Tables[releaseTable]  `toml:"release"`
	Tests     strict.Tables[testTable]     `toml:"test"`
	Hooks     strict.Tables[hookTable]     `toml:"hook"`
}

type siteTable struct {
	Name       string         `toml:"name"`
	Owner      string         `toml:"owner"`
	Owners     []string       `toml:"owners"`
	Production bool           `toml:"production"`
	Vars       map[string]any `toml:"vars"`
}

// twinTable is what twins people may make who are not root.
type twinTable struct {
	Members []string       `toml:"members"`
	Most    *int           `toml:"most"`
	Expires *time.Duration `toml:"expires"`
	NAT     bool           `toml:"nat"`
	Data    bool           `toml:"data"`
}

type hostTable struct {
	Address string      `toml:"address"`
	Cpus    float64     `toml:"cpus"`
	Memory  strict.Size `toml:"memory"`
}

type networkTable struct {
	Subnet    subnet   `toml:"subnet"`
	Gateway   address  `toml:"gateway"`
	NAT       bool     `toml:"nat"`
	Host      []string `toml:"host"`
	Spoof     bool     `toml:"spoof"`
	MTU       *int     `toml:"mtu"`
	Kind      string   `toml:"kind"`
	Interface string   `toml:"interface"`
}

type vethPairTable struct {
	Ends []string `toml:"ends"`
	MTU  *int     `toml:"mtu"`
}

type imageTable struct {
	Suite      string   `toml:"suite"`
	Components []string `toml:"components"`
	Packages   []string `toml:"packages"`
	Import     *string  `toml:"import"`
}

type mirrorTable struct {
	Apt      string   `toml:"apt"`
	Security string   `toml:"security"`
	PyPI     string   `toml:"pypi"`
	Proxy    string   `toml:"proxy"`
	Hosts    []string `toml:"hosts"`
	CA       *string  `toml:"ca"`
	Key      *string  `toml:"key"`
}

// choices are what a node says of itself or [defaults] says of all.
type choices struct {
	Image        *string      `toml:"image"`
	Host         *string      `toml:"host"`
	Engine       *string      `toml:"engine"`
	Cpus         *float64     `toml:"cpus"`
	Pin          *string      `toml:"pin"`
	Memory       *strict.Size `toml:"memory"`
	Swap         *strict.Size `toml:"swap"`
	Pids         *int         `toml:"pids"`
	Privileged   *bool        `toml:"privileged"`
	Autostart    *bool        `toml:"autostart"`
	Requirements *string      `toml:"requirements"`
}

type nodeTable struct {
	At          *strict.Node          `toml:"-"`
	ID          *int                  `toml:"id"`
	Roles       []string              `toml:"roles"`
	Net         strict.Tables[string] `toml:"net"`
	Interface   strict.Tables[string] `toml:"interface"`
	SimulatedBy string                `toml:"simulated_by"`
	Vars        map[string]any        `toml:"vars"`
	choices
}

type defaultsTable struct {
	Networks *[]string `toml:"networks"`
	choices
}

type groupTable struct {
	Nodes  []string `toml:"nodes"`
	Groups []string `toml:"groups"`
	Batch  batch    `toml:"batch"`
}

type volumeTable struct {
	Path   string         `toml:"path"`
	NFS    string         `toml:"nfs"`
	Shared bool           `toml:"shared"`
	Mirror string         `toml:"mirror"`
	Every  *time.Duration `toml:"every"`
}

type secretTable struct {
	File     string   `toml:"file"`
	Command  []string `toml:"command"`
	Generate int      `toml:"generate"`
}

type releaseTable struct {
	Requirements *string           `toml:"requirements"`
	Image        string            `toml:"image"`
	Notes        string            `toml:"notes"`
	Roles        map[string]string `toml:"roles"`
}

type hookTable struct {
	On      []string       `toml:"on"`
	Command []string       `toml:"command"`
	User    string         `toml:"user"`
	URL     string         `toml:"url"`
	Timeout *time.Duration `toml:"timeout"`
}

type testTable struct {
	Node    string         `toml:"node"`
	Command []string       `toml:"command"`
	User    string         `toml:"user"`
	Timeout *time.Duration `toml:"timeout"`
}
