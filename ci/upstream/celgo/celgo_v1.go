//go:build !inner

// Package celgo has the names of cel-go that this module needs, of the minors until 1.37.
package celgo

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
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
