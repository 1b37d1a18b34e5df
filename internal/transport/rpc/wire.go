package rpc

import (
	"encoding/json"
	"io"
	"time"

	"github.com/hashicorp/yamux"

	"orrery/internal/guest/boot"
	"orrery/internal/host"
)

// version is the version of the whole protocol. The format of the greeting is the same in all
// versions.
const version = "1"

// A request is the request in the first frame of a stream. Each verb uses some of its fields.
type request struct {
	Verb string `json:"verb"`

	Args  []string `json:"args,omitempty"` // run
	Env   []string `json:"env,omitempty"`
	User  string   `json:"user,omitempty"`
	Input bool     `json:"input,omitempty"` // the command has input, on a stream of its own
	// send the output to the client; otherwise it is only used for the answer
	Stdout bool       `json:"stdout,omitempty"`
	Stderr bool       `json:"stderr,omitempty"`
	Merged bool       `json:"merged,omitempty"`   // standard output and standard error are one
	Size   *host.Size `json:"terminal,omitempty"` // the command has a terminal
	Of     uint32     `json:"of,omitempty"`       // input: the stream of the command

	Files []file `json:"files,omitempty"` // put

	Network string `json:"network,omitempty"` // dial
	Address string `json:"address,omitempty"`

	Path  string   `json:"path,omitempty"`  // await
	Paths []string `json:"paths,omitempty"` // forget, find
	Disks []string `json:"disks,omitempty"` // unused: serial numbers

	NICs []boot.NIC `json:"nics,omitempty"` // join

	About string `json:"about,omitempty"` // talk
	// run, put, dial: a place behind the server, which interprets this value (Doors)
	At json.RawMessage `json:"at,omitempty"`
}

// A file is a host.File whose content follows.
type file struct {
	Path  string `json:"path"`
	Owner string `json:"owner,omitempty"`
	Mode  uint32 `json:"mode,omitempty"`
	Link  string `json:"link,omitempty"`
	Size  int    `json:"size,omitempty"`
}

// The verbs.
const (
	verbRun              = "run"
	verbInput            = "input"
	verbPut              = "put"
	verbDial             = "dial"
	verbAwait            = "await"
	verbPing             = "ping"
	verbConfigureNICs    = "join"
	verbPowerOff         = "poweroff"
	verbUnmount          = "forget"
	verbRefreshMounts    = "find"
	verbCheckDisksUnused = "unused"
	verbWakeFileServer   = "stir"
	verbStream           = "talk"
)

// cancelGrace is how long to wait for a call to end after its caller has given up. The server needs
// this time to end the command and to report that.
var cancelGrace = 3 * time.Second // variable, so that tests can change it

// pingInterval is the interval between two requests for a sign of life while a call is running. It is
// also how long the client waits for each one.
var pingInterval = 10 * time.Second // variable, so that tests can change it

// silentIntervals is how many of these intervals make one interval of bury. A client that is silent for two
// of those is considered gone.
const silentIntervals = 3

// streamCloseTimeout is how long yamux keeps a stream that this end has closed and the other has not. After
// that yamux drops data that has not been read. An end closes a stream only when it needs nothing
// more from it.
var streamCloseTimeout = 15 * time.Second // variable, so that tests can change it

// yamuxConfig returns yamux's settings for both ends. Keepalives are off, because a frozen machine is
// not dead and an idle one must not be woken. For the same reason nothing has a timeout: callers
// use contexts.
func yamuxConfig() *yamux.Config {
	s := yamux.DefaultConfig()
	s.EnableKeepAlive = false
	s.StreamOpenTimeout = 0
	s.StreamCloseTimeout = streamCloseTimeout
	s.ConnectionWriteTimeout = time.Hour
	s.LogOutput = io.Discard
	return s
}
