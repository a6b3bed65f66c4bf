/** Links within the console: they keep the scope. Nothing else links by react-router itself. */
import { Link as Plain, NavLink as PlainNav, type LinkProps, type NavLinkProps } from 'react-router';

import { withScope } from './scope.ts';
import { useScope } from './useScope.ts';

export function Link({ to, ...rest }: Omit<LinkProps, 'to'> & { to: string }) {
  return <Plain to={withScope(to, useScope())} {...rest} />;
}

export function NavLink({ to, ...rest }: Omit<NavLinkProps, 'to'> & { to: string }) {
  return <PlainNav to={withScope(to, useScope())} {...rest} />;
}
