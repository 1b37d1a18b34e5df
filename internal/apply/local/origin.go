package local

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/check"
)

// An ownerRecord is this host's record of the site that owns its nodes.
type ownerRecord struct {
	ID string `json:"id"` // the id of the site
}

func (p *SiteState) ownerFile() string { return filepath.Join(p.Dirs.Site(p.Key), "origin.json") }

// owner returns the id of the site whose nodes are here, or "" if none is on record.
func (p *SiteState) owner() (string, error) {
	owner, err := host.ReadJSON[ownerRecord](p.ownerFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil || !check.ValidLabel(owner.ID):
		return "", problem.New(problem.Failed, "the record of which site owns the nodes cannot be read").At(p.ownerFile()).Because(err).
			Try("if they are those of this site, remove the file: the next change writes it again")
	}
	return owner.ID, nil
}

// WithOwner returns the nodes on this host and their owner.
func (h nodeHost) WithOwner(ctx context.Context, look apply.InspectMode) (present apply.OwnedNodes, err error) {
	if err := h.Backends.Claims.Elsewhere(h.Key); err != nil {
		return present, err
	}
	list := h.List
	if look == apply.InspectBrief {
		list = h.listBrief
	}
	if present.Nodes, err = list(ctx); err != nil {
		return present, err
	}
	if look == apply.InspectFull {
		h.addShortages(ctx, present.Nodes)
	}
	present.Origin, err = h.owner()
	return present, err
}

// SetSiteID records the id of the site that owns the nodes.
func (h stateHost) SetSiteID(_ context.Context, id string) error {
	if !check.ValidLabel(id) {
		return problem.New(problem.Surprise, "%q is not the id of a site", id)
	}
	return host.WriteJSON(h.ownerFile(), 0o600, ownerRecord{id})
}
