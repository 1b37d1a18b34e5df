package remote

import (
	"context"
	"io"

	"orrery/internal/observe"
)

// Read returns which releases are live on the remote host.
func (f releaseHost) Read(ctx context.Context) (r observe.Releases, err error) {
	return releasesMethod.call(ctx, f.remoteHost, none{})
}

var releasesMethod = method[none, observe.Releases]{
	name: "releases", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (observe.Releases, error) {
		return c.host().Releases.Read(ctx)
	},
}

// Write records on the remote host which releases are live.
func (f releaseHost) Write(ctx context.Context, r observe.Releases) error {
	_, err := writeReleasesMethod.call(ctx, f.remoteHost, r)
	return err
}

var writeReleasesMethod = method[observe.Releases, none]{
	name: "set releases",
	answer: func(ctx context.Context, c *serverCall, r observe.Releases) (none, error) {
		return none{}, c.host().Releases.Write(ctx, r)
	},
}

// Copy records the record of another host on the remote host.
func (f releaseHost) Copy(ctx context.Context, r observe.Releases) error {
	_, err := copyReleasesMethod.call(ctx, f.remoteHost, r)
	return err
}

var copyReleasesMethod = method[observe.Releases, none]{
	name: "copy releases",
	answer: func(ctx context.Context, c *serverCall, r observe.Releases) (none, error) {
		return none{}, c.host().Releases.Copy(ctx, r)
	},
}

// Editions returns the digests of the copies that the remote host keeps of some releases.
func (f releaseHost) Editions(ctx context.Context, of []int) (all map[int]string, err error) {
	return editionsMethod.call(ctx, f.remoteHost, of)
}

var editionsMethod = method[[]int, map[int]string]{
	name: "editions", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask []int) (map[int]string, error) {
		return c.host().Releases.Editions(ctx, ask)
	},
}

// SendEdition makes the remote host send the copy of the site directory from which a release was
// staged.
func (f releaseHost) SendEdition(ctx context.Context, release int, rw io.ReadWriter) error {
	return sendEditionMethod.callStream(ctx, f.remoteHost, release, rw)
}

var sendEditionMethod = method[int, none]{
	name: "send edition", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask int) (none, error) {
		return none{}, c.host().Releases.SendEdition(ctx, ask, c.stream())
	},
}

// KeepEdition stores such a copy on the remote host.
func (f releaseHost) KeepEdition(ctx context.Context, release int, digest string, rw io.ReadWriter) error {
	return keepEditionMethod.callStream(ctx, f.remoteHost, editionHeader{release, digest}, rw)
}

// An editionHeader is the copy of a site directory that is about to be sent.
type editionHeader struct {
	Release int    `json:"release"`
	Digest  string `json:"digest"`
}

var keepEditionMethod = method[editionHeader, none]{
	name: "keep edition", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask editionHeader) (none, error) {
		return none{}, c.host().Releases.KeepEdition(ctx, ask.Release, ask.Digest, c.stream())
	},
}

// A pieceMessage is a piece of a stream that the caller sends.
type pieceMessage struct {
	Bytes []byte `json:"bytes,omitempty"`
	End   bool   `json:"end,omitempty"` // this was the last piece
}
