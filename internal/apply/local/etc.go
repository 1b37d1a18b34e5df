package local

import (
	"context"

	"orrery/internal/engine/nodedir"
	"orrery/internal/role"
	"orrery/internal/site/inventory"
	"orrery/internal/site/spec"
)

// provideEtc writes the files that a node sees in /etc/orrery: names, the environment of its roles,
// its secrets and the files that contain secrets.
func (n *names) provideEtc(ctx context.Context, node *spec.Node, duties *spec.RoleActions,
	told *inventory.PeerInfo) error {
	if err := n.writeEtc(told); err != nil {
		return err
	}
	if err := writeUnsynced(n.Dirs.Etc(node.Site, node.ID), "env", duties.Env, 0o644); err != nil {
		return err
	}
	for i := range duties.Roles {
		if err := n.provideSecrets(ctx, node, duties, &duties.Roles[i]); err != nil {
			return err
		}
	}
	return n.chownEtc(node)
}

// chownEtc makes the node's root the owner of /etc/orrery and of everything directly in it. Programs
// such as munged refuse a secret below a directory that is owned neither by root nor by their user.
func (n *names) chownEtc(node *spec.Node) error {
	first, err := n.rootOf(node)
	if err != nil || first == 0 {
		return err
	}
	return nodedir.ChownDir(n.Dirs.Etc(node.Site, node.ID), first)
}

// provideSecrets writes the secrets that a role needs, and its files that contain secrets.
func (n *names) provideSecrets(ctx context.Context, node *spec.Node, duties *spec.RoleActions,
	r *spec.RoleAction) error {
	for _, use := range r.Secrets {
		value, err := n.Secrets.Value(ctx, duties.StoredSecret(use.Name))
		if err != nil {
			return err
		}
		if err := n.writeNodeFile(node, "secrets/"+use.Name, []byte(value), use.Owner, use.Mode); err != nil {
			return err
		}
	}
	for _, f := range r.Rendered {
		if !f.Secret {
			continue
		}
		text, err := n.Secrets.Text(ctx, spec.SecretText{Node: duties.Node, Release: duties.Release, Role: r.Name,
			Path: f.Path})
		if err != nil {
			return err
		}
		if err := n.writeNodeFile(node, role.SecretFilePath(f.Path), text, f.Owner, f.Mode); err != nil {
			return err
		}
	}
	return nil
}
