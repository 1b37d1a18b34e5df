package rpc

import (
	"encoding/json"
	"io"
	"time"

	"github.com/hashicorp/yamux"

	"orrery/internal/guest/boot"
	"orrery/internal/host"
)

// version is that of all that is said on a wire. The line that tells it stays as it is in all versions.
const version = "1"

// A question is the first frame of a stream: what is asked. Of its fields a verb has a few.
type question struct {
	Verb string `json:"verb"`

	Args   []string   `json:"args,omitempty"` // run
	Env    []string   `json:"env,omitempty"`
	User   string     `json:"user,omitempty"`
	Input  bool       `json:"input,omitempty"`  // it comes on a stream of its own
	Stdout bool       `json:"stdout,omitempty"` // it is wanted, not only kept for the answer
	Stderr bool       `json:"stderr,omitempty"`
	Merged bool       `json:"merged,omitempty"`   // both are one
	Size   *host.Size `json:"terminal,omitempty"` // it has a terminal
	Of     uint32     `json:"of,omitempty"`       // input: the stream of the command

	Files []file `json:"files,omitempty"` // put

	Network string `json:"network,omitempty"` // dial
	Address string `json:"address,omitempty"`

	Path  string   `json:"path,omitempty"`  // await
	Paths []string `json:"paths,omitempty"` // forget, find
	Disks []string `json:"disks,omitempty"` // unused: serial numbers

	NICs []boot.NIC `json:"nics,omitempty"` // join

	About string `json:"about,omitempty"` // talk
	// run, put, dial: in a place beyond the far end, which knows what this says (Doors)
	At json.RawMessage `json:"at,omitempty"`
}

// A file is a host.File, whose content follows.
type file struct {
	Path  string `json:"path"`
	Owner string `json:"owner,omitempty"`
	Mode  uint32 `json:"mode,omitempty"`
	Link  string `json:"link,omitempty"`
	Size  int    `json:"size,omitempty"`
}

// The verbs.
const (
	toRun      = "run"
	toInput    = "input"
	toPut      = "put"
	toDial     = "dial"
	toAwait    = "await"
	toPing     = "ping"
	toJoin     = "join"
	toPowerOff = "poweroff"
	toForget   = "forget"
	toFind     = "find"
	toUnused   = "unused"
	toStir     = "stir"
	toTalk     = "talk"
)

// cancelGrace is how long the end of a call is waited for that its caller has given up: time to end a
// command, and to be told of it.
var cancelGrace = 3 * time.Second // but in tests

// watching is how often a sign of life is asked for while something is under way, and how long it
// is waited for.
var watching = 10 * time.Second // but in tests

// silent is how many times as long a client is not heard of who is taken to have gone.
const silent = 3

// closing is how long a stream takes memory that this end has closed and the other has not. An end
// closes a stream only when it wants nothing of it any more: yamux forgets after this time what has
// not been read.
var closing = 15 * time.Second // but in tests

// settings are those of both ends. No keepalive: a machine that stands still is not dead, and one
// that has nothing to do is not to be woken. For the same reason nothing ends because it takes
// long: who has no patience has a context.
func settings() *yamux.Config {
	s := yamux.DefaultConfig()
	s.EnableKeepAlive = false
	s.StreamOpenTimeout = 0
	s.StreamCloseTimeout = closing
	s.ConnectionWriteTimeout = time.Hour
	s.LogOutput = io.Discard
	return s
}
