package remote

import (
	"context"
	"errors"
	"io"

	"orrery/internal/observe"
)

// ReadReleases tells which releases are live.
func (f *far) ReadReleases(ctx context.Context) (r observe.Releases, err error) {
	return releasesMethod.call(ctx, f, none{})
}

var releasesMethod = method[none, observe.Releases]{
	name: "releases", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, _ none) (observe.Releases, error) {
		return c.host().ReadReleases(ctx)
	},
}

// WriteReleases takes down which are live.
func (f *far) WriteReleases(r observe.Releases) error {
	_, err := writeReleasesMethod.call(context.Background(), f, r)
	return err
}

var writeReleasesMethod = method[observe.Releases, none]{
	name: "set releases",
	answer: func(_ context.Context, c *received, r observe.Releases) (none, error) {
		return none{}, c.host().WriteReleases(r)
	},
}

// CopyReleases takes down what another host has on record.
func (f *far) CopyReleases(r observe.Releases) error {
	_, err := copyReleasesMethod.call(context.Background(), f, r)
	return err
}

var copyReleasesMethod = method[observe.Releases, none]{
	name: "copy releases",
	answer: func(_ context.Context, c *received, r observe.Releases) (none, error) {
		return none{}, c.host().CopyReleases(r)
	},
}

// Editions tells of which of some releases the host keeps a copy.
func (f *far) Editions(ctx context.Context, of []int) (all map[int]string, err error) {
	return editionsMethod.call(ctx, f, of)
}

var editionsMethod = method[[]int, map[int]string]{
	name: "editions", traits: traits{abandoned: true},
	answer: func(ctx context.Context, c *received, ask []int) (map[int]string, error) {
		return c.host().Editions(ctx, ask)
	},
}

// Edition opens the copy of the site directory from which a release was staged.
func (f *far) Edition(ctx context.Context, release int) (io.ReadCloser, error) {
	return editionMethod.stream(ctx, f, release)
}

var editionMethod = method[int, none]{
	name: "edition", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, ask int) (none, error) {
		in, err := c.host().Edition(ctx, ask)
		if err != nil {
			return none{}, err
		}
		return none{}, c.send(in)
	},
}

// KeepEdition stores one.
func (f *far) KeepEdition(ctx context.Context, release int, digest string, from io.Reader) error {
	t, err := keepEditionMethod.begin(ctx, f.Link, f.at, edition{release, digest})
	if err != nil {
		return err
	}
	defer t.Close()
	t.reminded()
	piece := make([]byte, maxPieceBytes)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if err := t.Say(part{Bytes: piece[:n]}); err != nil {
				return t.failed(ctx, err)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err // the far end sees no end, and keeps nothing
		}
	}
	if err := t.Say(part{End: true}); err != nil {
		return t.failed(ctx, err)
	}
	return t.result(ctx, nil, nil)
}

// An edition is the copy of a site directory that is about to be sent.
type edition struct {
	Release int    `json:"release"`
	Digest  string `json:"digest"`
}

var keepEditionMethod = method[edition, none]{
	name: "keep edition", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, ask edition) (none, error) {
		return none{}, c.host().KeepEdition(ctx, ask.Release, ask.Digest, c.parts())
	},
}

// A part is a piece of an edition that is sent to be kept.
type part struct {
	Bytes []byte `json:"bytes,omitempty"`
	End   bool   `json:"end,omitempty"` // it was the last
}
