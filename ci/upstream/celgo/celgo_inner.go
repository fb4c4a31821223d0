//go:build inner

// Package celgo has the names of cel-go that this module needs, since 1.38, under its new path.
package celgo

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// The environment of an expression, and its types.
type (
	Env  = cel.Env
	Int  = types.Int
	Type = types.Type
)

// Kinds of types.
const (
	AnyKind       = types.AnyKind
	DynKind       = types.DynKind
	NullTypeKind  = types.NullTypeKind
	OpaqueKind    = types.OpaqueKind
	StructKind    = types.StructKind
	TypeKind      = types.TypeKind
	TypeParamKind = types.TypeParamKind
)

// Types that are to be found without a declaration.
var (
	AnyType  = types.AnyType
	NullType = types.NullType
)
